import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";

import type { EventView } from "../live/stream";
import { Failure } from "../parts/Failure";
import { JsonText } from "../parts/JsonText";
import { Loading } from "../parts/Loading";
import type { EventSearch } from "./eventSearch";
import { EventFilters } from "./EventFilters";
import { EventTail } from "./EventTail";
import { useEvents } from "./useEvents";

/** What happens, as it happens, and what happened before. */
export function EventsPage() {
  const search = useSearch({ from: "/events" });
  const navigate = useNavigate();
  const [paused, setPaused] = useState(false);
  const [opened, setOpened] = useState<EventView | null>(null);
  const feed = useEvents(search, paused);
  const change = (next: Partial<EventSearch>) => {
    // Back undoes what was chosen, not each pause in typing.
    const typed = "q" in next || "pipeline" in next;
    void navigate({ to: "/events", replace: typed, search: (before) => ({ ...before, ...next }) });
  };
  return (
    <div className="events-page">
      <h1 className="spoken">Events</h1>
      <div className="bar">
        <EventFilters search={search} onChange={change} />
        <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? `Resume${feed.waiting > 0 ? ` (${feed.waiting} new)` : ""}` : "Pause"}
        </button>
        <span className="muted">{feed.events.length} shown</span>
      </div>
      {feed.error !== null && feed.events.length === 0 && <Failure error={feed.error} retry={feed.retry} />}
      {feed.loading && feed.events.length === 0 && <Loading what="the events" />}
      {!feed.loading && feed.error === null && feed.events.length === 0 && (
        <p className="state muted">No events fit{feed.next === null ? "." : " so far."}</p>
      )}
      <div className="tail-pair">
        <EventTail events={feed.events} loading={feed.loading} more={feed.next !== null} onOlder={() => void feed.older()} onOpen={setOpened} opened={opened} />
        {opened !== null && (
          <aside className="inspector" aria-label="The event as JSON">
            <button type="button" className="quiet" onClick={() => setOpened(null)}>
              Close
            </button>
            <JsonText value={opened} />
          </aside>
        )}
      </div>
    </div>
  );
}
