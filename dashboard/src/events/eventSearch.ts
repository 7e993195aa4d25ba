import { compact, type Reader } from "../url/read";

export const SEVERITIES = ["info", "warning", "error", "critical"] as const;
export type Severity = (typeof SEVERITIES)[number];
export const SINCE = ["1h", "6h", "24h", "7d", "30d"] as const;
export type Since = (typeof SINCE)[number];

export interface EventSearch {
  pipeline?: string;
  type?: string;
  severity?: Severity;
  since?: Since;
  q?: string;
}

export function readEventSearch(reader: Reader): EventSearch {
  return compact({
    pipeline: reader.words("pipeline"),
    type: reader.words("type", 64),
    severity: reader.oneOf("severity", SEVERITIES),
    since: reader.oneOf("since", SINCE),
    q: reader.words("q"),
  });
}

const LENGTHS: Record<Since, number> = { "1h": 1, "6h": 6, "24h": 24, "7d": 168, "30d": 720 };

/** The beginning of the time that is asked for, by the controller's clock. */
export function sinceInstant(since: Since | undefined, now: number): string | undefined {
  return since === undefined ? undefined : new Date(now - LENGTHS[since] * 3_600_000).toISOString();
}
