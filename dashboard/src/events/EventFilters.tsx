import { TypedInput } from "../parts/TypedInput";
import { EVENT_TYPES } from "./types";
import { SEVERITIES, SINCE, type EventSearch, type Severity, type Since } from "./eventSearch";

interface Props {
  search: EventSearch;
  onChange: (next: Partial<EventSearch>) => void;
}

/** By text, pipeline, type, severity and time. */
export function EventFilters({ search, onChange }: Props) {
  return (
    <div className="filters">
      <TypedInput label="Search events" placeholder="/ search" value={search.q} shortcut onChange={(q) => onChange({ q })} />
      <TypedInput label="Pipeline" placeholder="pipeline" value={search.pipeline} onChange={(pipeline) => onChange({ pipeline })} />
      <select aria-label="Type" value={search.type ?? ""} onChange={(event) => onChange({ type: event.target.value || undefined })}>
        <option value="">all types</option>
        {EVENT_TYPES.map((type) => (
          <option key={type}>{type}</option>
        ))}
      </select>
      <select
        aria-label="Severity"
        value={search.severity ?? ""}
        onChange={(event) => onChange({ severity: (event.target.value || undefined) as Severity | undefined })}
      >
        <option value="">all severities</option>
        {SEVERITIES.slice(1).map((severity) => (
          <option key={severity} value={severity}>
            {severity === "critical" ? "critical" : `${severity} or worse`}
          </option>
        ))}
      </select>
      <select
        aria-label="How far back"
        value={search.since ?? ""}
        onChange={(event) => onChange({ since: (event.target.value || undefined) as Since | undefined })}
      >
        <option value="">any time</option>
        {SINCE.map((since) => (
          <option key={since} value={since}>
            last {since}
          </option>
        ))}
      </select>
    </div>
  );
}
