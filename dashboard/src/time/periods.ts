// Periods are names of the schedule's wall clock: `2026-03-03`, `2026-03-03T10`, `2026-03-03T1015`.
import { local } from "./zones";

const FORM = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2})(\d{2})?)?$/;
const HOUR = 3_600_000;

/** The wall-clock time of an instant, as if it were UTC. */
function wall(at: number, zone: string): number {
  const { year, month, day, hour, minute, second } = local(at, zone);
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
}

/** The instant at which a period begins in a zone: in a gap the first moment after it, of two the earlier. */
export function periodStart(period: string, zone: string): number | null {
  const match = FORM.exec(period);
  if (match === null) return null;
  const [, year, month, day, hour, minute] = match;
  const wanted = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour ?? 0), Number(minute ?? 0));
  // The offset of a zone changes by a few hours at most: one of these places it.
  for (const guess of [wanted - (wall(wanted - 14 * HOUR, zone) - (wanted - 14 * HOUR)), wanted - (wall(wanted + 14 * HOUR, zone) - (wanted + 14 * HOUR))]) {
    if (wall(guess, zone) === wanted) return guess;
  }
  return afterGap(wanted, zone);
}

/** The clocks skip this time: the first instant that shows a later one. */
function afterGap(wanted: number, zone: string): number {
  let before = wanted - 26 * HOUR;
  let after = wanted + 26 * HOUR;
  while (after - before > 1000) {
    const middle = before + Math.floor((after - before) / 2000) * 1000;
    if (wall(middle, zone) >= wanted) after = middle;
    else before = middle;
  }
  return after;
}
