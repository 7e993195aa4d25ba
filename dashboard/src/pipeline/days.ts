import type { Schemas } from "../api/client";

export interface Day {
  date: string;
  runs: Schemas["TrendRun"][];
}

/** The runs by the day of their period, the oldest first; days without runs between them are there, too. */
export function byDay(runs: readonly Schemas["TrendRun"][]): Day[] {
  const first = runs[0]?.date.slice(0, 10);
  const last = runs[runs.length - 1]?.date.slice(0, 10);
  if (first === undefined || last === undefined) return [];
  const found = new Map<string, Day>();
  for (let at = Date.parse(`${first}T00:00:00Z`); at <= Date.parse(`${last}T00:00:00Z`); at += 86_400_000) {
    const date = new Date(at).toISOString().slice(0, 10);
    found.set(date, { date, runs: [] });
  }
  for (const run of runs) found.get(run.date.slice(0, 10))?.runs.push(run);
  return [...found.values()];
}
