// The columns of the overview: which hour or day each is, and which a run belongs into.
import { periodStart } from "../time/periods";
import { dateOf, local } from "../time/zones";

export type Bucket = "hour" | "day";

export const SPANS = ["6h", "12h", "24h", "48h", "7d", "14d", "30d", "90d"] as const;
export type Span = (typeof SPANS)[number];

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Beyond so many columns, a lane is drawn as one picture. */
export const MOST_CELLS = 31;

export interface Columns {
  bucket: Bucket;
  from: number;
  count: number;
}

export function lengthOf(bucket: Bucket): number {
  return bucket === "hour" ? HOUR : DAY;
}

/** What to ask for: a span that ends a little ahead, so that what comes next has its place. */
export function columnsFor(span: Span, now: number): Columns {
  const count = Number.parseInt(span, 10);
  if (span.endsWith("d")) {
    const from = Math.floor(now / DAY) * DAY - (count - 1) * DAY;
    return { bucket: "day", from, count };
  }
  const ahead = count <= 6 ? 1 : Math.max(1, Math.round(count / 8));
  const from = Math.floor(now / HOUR) * HOUR - (count - 1 - ahead) * HOUR;
  return { bucket: "hour", from, count };
}

export function endOf(columns: Columns): number {
  return columns.from + columns.count * lengthOf(columns.bucket);
}

/** The column of an instant. Day columns are dates, not instants. */
export function columnOfInstant(columns: Columns, at: number): number | null {
  const index = Math.floor((at - columns.from) / lengthOf(columns.bucket));
  return index >= 0 && index < columns.count ? index : null;
}

/** The column of a run: by its period, or for a day in hour columns by the hour it was opened. */
export function columnOfRun(columns: Columns, date: string, zone: string, openedAt: string | null): number | null {
  if (columns.bucket === "day") return columnOfInstant(columns, Date.parse(`${date.slice(0, 10)}T00:00:00Z`));
  if (date.length > 10) {
    const start = periodStart(date, zone);
    return start === null ? null : columnOfInstant(columns, Math.floor(start / HOUR) * HOUR);
  }
  return openedAt === null ? null : columnOfInstant(columns, Date.parse(openedAt));
}

/** When a column begins. */
export function beginOf(columns: Columns, index: number): number {
  return columns.from + index * lengthOf(columns.bucket);
}

/** A column in words: `10:00-11:00 EST, 2026-03-03`, or its date. */
export function columnName(columns: Columns, index: number, zone: string): string {
  const begin = beginOf(columns, index);
  if (columns.bucket === "day") return dateOf(begin, "UTC");
  const from = local(begin, zone);
  const to = local(begin + HOUR, zone);
  return `${dateOf(begin, zone)} ${from.hour}:${from.minute} to ${to.hour}:${to.minute}`;
}

/** The width of the columns of a wide screen, of a label, and of the word "now", in pixels. */
const TRACK = 380;
const LABEL: Record<Bucket, number> = { hour: 15, day: 36 };
const NOW = 36;

/** Labels that the word "now" would be written over are left out; in the last column it reaches to the left. */
export function withNow(labels: readonly string[], bucket: Bucket, now: number | null): string[] {
  if (now === null) return [...labels];
  const width = TRACK / labels.length;
  const atEnd = now === labels.length - 1;
  const before = Math.ceil((LABEL[bucket] + (atEnd ? NOW : 0)) / width);
  const after = Math.ceil(NOW / width);
  return labels.map((label, index) => (index === now ? "now" : index > now - before && index < now + after ? "" : label));
}

/** The labels above the columns: the hour, or the day of the month with its month where it begins. */
export function columnLabels(columns: Columns, zone: string): string[] {
  const every = columns.count <= 16 ? 1 : columns.count <= 31 ? 3 : columns.count <= 48 ? 6 : 10;
  return Array.from({ length: columns.count }, (_, index) => {
    const begin = beginOf(columns, index);
    if (columns.bucket === "day") {
      const { month, day } = local(begin, "UTC");
      const shown = columns.count <= 16 || index % (every === 1 ? 1 : every) === 0;
      return shown ? `${month}-${day}` : "";
    }
    const { hour } = local(begin, zone);
    return Number(hour) % every === 0 ? hour : "";
  });
}
