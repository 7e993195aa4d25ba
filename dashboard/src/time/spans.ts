// Lengths of time in their two largest units, as `why` says them.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `42s`, `12m`, `1h04m`, `3d 4h`. */
export function span(milliseconds: number): string {
  const size = Math.abs(milliseconds);
  if (size < MINUTE) return `${Math.floor(size / SECOND)}s`;
  if (size < HOUR) return `${Math.floor(size / MINUTE)}m`;
  if (size < DAY) {
    const minutes = Math.floor((size % HOUR) / MINUTE);
    return `${Math.floor(size / HOUR)}h${minutes === 0 ? "" : `${String(minutes).padStart(2, "0")}m`}`;
  }
  const hours = Math.floor((size % DAY) / HOUR);
  return `${Math.floor(size / DAY)}d${hours === 0 ? "" : ` ${hours}h`}`;
}

/** `in 12m`, `3m ago`, `now`. */
export function distance(at: number, now: number): string {
  if (Math.abs(at - now) < SECOND) return "now";
  return at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`;
}

/** Seconds of a job: `8s`, `4m 10s`, `1h04m`. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds * 10) / 10}s`;
  if (seconds < 3600) {
    const rest = Math.floor(seconds % 60);
    return `${Math.floor(seconds / 60)}m${rest === 0 ? "" : ` ${rest}s`}`;
  }
  return span(seconds * 1000);
}
