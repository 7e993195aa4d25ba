import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { EventView } from "../live/stream";
import { JsonText } from "../parts/JsonText";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";

interface Props {
  event: EventView;
  timezone: string | undefined;
  /** Among events of one run: neither pipeline nor period need be said. */
  own?: boolean;
}

/** One event in a line; its JSON on demand. */
export function EventRow({ event, timezone, own = false }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <span className="e-time">
        <Time at={event.timestamp} zone={timezone} seconds />
      </span>
      <span className="e-severity" data-severity={event.severity}>
        {event.severity}
      </span>
      <span className="e-type mono">{event.type}</span>
      {!own && (
        <span className="e-who">
          <EventTarget event={event} />
        </span>
      )}
      <span className="e-message">
        <Text>{event.message}</Text>
      </span>
      <button type="button" className="quiet e-more" aria-expanded={open} onClick={() => setOpen(!open)}>
        JSON
      </button>
      {open && (
        <div className="e-json">
          <JsonText value={event} />
        </div>
      )}
    </>
  );
}

function EventTarget({ event }: { event: EventView }) {
  const { pipelineId: pipeline, scheduleId: schedule, date } = event;
  if (schedule === "" || date === "") {
    return (
      <Link to="/pipelines/$pipeline" params={{ pipeline }}>
        <Text>{pipeline}</Text>
      </Link>
    );
  }
  return (
    <Link to="/pipelines/$pipeline/runs/$schedule/$date" params={{ pipeline, schedule, date }}>
      <Text>{`${pipeline} ${date}`}</Text>
    </Link>
  );
}
