import type { Schemas } from "../api/client";
import { EventList } from "../events/EventList";

const TYPES = new Set([
  "POST_RUN_BASELINE_CAPTURED",
  "BASELINE_CAPTURE_FAILED",
  "POST_RUN_PASSED",
  "POST_RUN_FAILED",
  "POST_RUN_DRIFT",
  "POST_RUN_DRIFT_INFLIGHT",
  "POST_RUN_SENSOR_MISSING",
  "LATE_DATA_ARRIVAL",
]);

/** What was watched after the run. */
export function PostRun({ run, timezone }: { run: Schemas["RunDetail"]; timezone: string }) {
  const events = run.events.filter((event) => TYPES.has(event.type));
  if (events.length === 0) return <p className="muted">Nothing was watched after this run, or nothing has happened since.</p>;
  return <EventList events={events} timezone={timezone} />;
}
