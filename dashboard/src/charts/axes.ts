import type uPlot from "uplot";

import { duration, span } from "../time/spans";

/** The colours of the page, as the charts need them. */
export function colours(): Record<"text" | "line" | "done" | "failed" | "accent" | "warned" | "band", string> {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: read("--muted"),
    line: read("--line"),
    done: read("--done-text"),
    failed: read("--failed"),
    accent: read("--accent"),
    warned: read("--warned"),
    band: read("--accent-soft"),
  };
}

/** Steps that are round as lengths of time, in seconds. */
const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];

/** Dates below, lengths of time at the side. */
export function axes(short: (seconds: number) => string): uPlot.Axis[] {
  const { text, line } = colours();
  const common = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui" };
  return [
    { ...common, space: 70, values: (_, splits) => dates(splits) },
    { ...common, size: 66, incrs: ROUND, values: (_, splits) => splits.map(short) },
  ];
}

/** Days, or hours where the ticks lie closer; the first of them names the zone. */
export function dates(splits: readonly number[]): string[] {
  const [first = 0, second = first + 86_400] = splits;
  return splits.map((at, index) => {
    const text = new Date(at * 1000).toISOString();
    if (second - first >= 86_400) return text.slice(5, 10);
    return index === 0 ? `${text.slice(11, 16)} UTC` : text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16);
  });
}

/** `1h04m early`, `12m late`. */
export function margin(seconds: number): string {
  if (seconds === 0) return "at the deadline";
  return `${span(seconds * 1000)} ${seconds > 0 ? "early" : "late"}`;
}

export function shortMargin(seconds: number): string {
  return seconds === 0 ? "0" : `${seconds > 0 ? "−" : "+"}${span(seconds * 1000)}`;
}

export { duration };
