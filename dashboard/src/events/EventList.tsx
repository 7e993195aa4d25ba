import type { EventView } from "../live/stream";
import { EventRow } from "./EventRow";

/** Some events, in their order. */
export function EventList({ events, timezone }: { events: readonly EventView[]; timezone: string }) {
  return (
    <ul className="events">
      {events.map((event) => (
        <li key={event.id} className="event">
          <EventRow event={event} timezone={timezone} own />
        </li>
      ))}
    </ul>
  );
}
