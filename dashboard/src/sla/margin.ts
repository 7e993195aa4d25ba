import { span } from "../time/spans";

/** `1h04m early`, `12m late`. */
export function shortMargin(seconds: number): string {
  return `${span(seconds * 1000)} ${seconds >= 0 ? "early" : "late"}`;
}
