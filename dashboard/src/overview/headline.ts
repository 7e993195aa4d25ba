// The first sentence of the overview: what is worst, or what comes next.
import { compareLanes } from "./order";
import { ATTENTION, type Lane } from "./states";

/** The lane that most needs somebody, and how many more do; null when none does. */
export function worst(lanes: readonly Lane[]): { lane: Lane; more: number } | null {
  const urgent = lanes.filter((lane) => ATTENTION.has(lane.standing)).sort(compareLanes);
  const lane = urgent[0];
  return lane === undefined ? null : { lane, more: urgent.length - 1 };
}

export interface Due {
  lane: Lane;
  date: string | null;
  at: string;
  what: "opens" | "must be done by";
}

/** What comes next of all: the nearest instant at which a run opens, or must be done. */
export function nextDue(lanes: readonly Lane[], now: number): Due | null {
  let found: Due | null = null;
  for (const lane of lanes) {
    for (const due of dues(lane)) {
      const at = Date.parse(due.at);
      if (at > now && (found === null || at < Date.parse(found.at))) found = due;
    }
  }
  return found;
}

function dues(lane: Lane): Due[] {
  const { current, sla, nextRun } = lane;
  const found: Due[] = [];
  if (current && current.word !== "done" && sla?.state === "pending" && typeof sla.breachAt === "string") {
    found.push({ lane, date: current.date, at: sla.breachAt, what: "must be done by" });
  }
  if (typeof nextRun?.startAt === "string") {
    found.push({ lane, date: nextRun.date, at: nextRun.startAt, what: "opens" });
  } else if (typeof nextRun?.breachAt === "string") {
    found.push({ lane, date: nextRun.date, at: nextRun.breachAt, what: "must be done by" });
  }
  return found;
}
