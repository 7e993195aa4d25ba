// The states of a cell and of a lane: letter, word, the class that gives colour and shape, and their order.
import type { Schemas } from "../api/client";

export type Standing = Schemas["Standing"];
export type Lane = Schemas["LaneView"];
export type Overview = Schemas["Overview"];

/** Worst first, as the controller ranks them. */
export const STANDINGS: readonly Standing[] = [
  "breached",
  "at-risk",
  "failed",
  "held",
  "missed",
  "invalid",
  "waiting",
  "running",
  "done",
  "dry-run",
  "not-due",
];

export const STANDING_WORDS: Record<Standing, string> = {
  breached: "breached",
  "at-risk": "at risk",
  failed: "failed",
  held: "held",
  missed: "missed",
  invalid: "invalid",
  waiting: "waiting",
  running: "running",
  done: "done",
  "dry-run": "dry run",
  "not-due": "not due",
};

/** What somebody should look at. */
export const ATTENTION: ReadonlySet<Standing> = new Set(["breached", "at-risk", "failed", "held", "missed", "invalid"]);

export function rank(standing: Standing): number {
  return STANDINGS.indexOf(standing);
}

export const LETTERS: Record<string, string> = {
  d: "done",
  r: "running",
  w: "waiting",
  f: "failed",
  h: "held",
  m: "missed",
  x: "excluded",
  o: "dry run",
  "-": "not due",
};

export const LETTER_OF: Record<string, string> = {
  done: "d",
  running: "r",
  waiting: "w",
  failed: "f",
  held: "h",
  missed: "m",
  "dry run": "o",
};

export const STANDING_OF: Record<string, Standing> = {
  done: "done",
  running: "running",
  waiting: "waiting",
  failed: "failed",
  held: "held",
  missed: "missed",
};

export const MARKS: Record<string, string> = { w: "SLA warning given", b: "SLA breach given" };
