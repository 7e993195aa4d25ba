// The first sentence of the overview: what is worst, or what comes next.
import { compareLanes } from "./order";
import { span } from "../time/spans";
import { ATTENTION, STANDING_WORDS, type Lane } from "./states";

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

/** How a lane stands, in the words of a sentence: how late it is, or how long is left, says more than the standing alone. */
export function standsText(lane: Lane, now: number): string {
  const at = lane.sla?.breachAt;
  const left = typeof at === "string" ? Date.parse(at) - now : null;
  if (lane.standing === "breached") return left === null ? "is late" : `is late by ${span(left)}`;
  if (lane.standing === "at-risk") return left === null || left < 0 ? "is at risk" : `is at risk, with ${span(left)} left`;
  if (lane.standing === "failed") return "has failed";
  if (lane.standing === "missed") return "was not opened";
  if (lane.standing === "invalid") return "has an invalid config";
  return `is ${STANDING_WORDS[lane.standing]}`;
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
  const open = sla?.state === "pending" || sla?.state === "at-risk";
  if (current && current.word !== "done" && open && typeof sla.breachAt === "string") {
    found.push({ lane, date: current.date, at: sla.breachAt, what: "must be done by" });
  }
  if (typeof nextRun?.startAt === "string") {
    found.push({ lane, date: nextRun.date, at: nextRun.startAt, what: "opens" });
  } else if (typeof nextRun?.breachAt === "string") {
    found.push({ lane, date: nextRun.date, at: nextRun.breachAt, what: "must be done by" });
  }
  return found;
}
