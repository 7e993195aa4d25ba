// A run over time: for each attempt its waiting, its job and the verdicts of its rules; SLA lines; what came after.
// Pure: the run and the controller's time in, rows with instants out.
import type { Schemas } from "../api/client";

type RunDetail = Schemas["RunDetail"];
type Attempt = Schemas["Attempt"];
type RuleResult = Omit<Schemas["RuleResult"], "history"> & { history?: Schemas["RuleChange"][] };

export type BarKind = "wait" | "start" | "job" | "pause" | "pass" | "fail";

export interface Bar {
  kind: BarKind;
  from: number;
  to: number;
  /** Has it no end yet? */
  open: boolean;
  text: string;
}

export interface Dot {
  at: number;
  kind: "good" | "bad" | "note";
  text: string;
}

export interface Row {
  id: string;
  label: string;
  sub: boolean;
  bars: Bar[];
  dots: Dot[];
}

export interface Line {
  at: number;
  kind: "warning" | "breach" | "now" | "ready-by";
  text: string;
}

export interface Waterfall {
  from: number;
  to: number;
  rows: Row[];
  lines: Line[];
}

const AFTERWARDS: Record<string, Dot["kind"]> = {
  POST_RUN_BASELINE_CAPTURED: "note",
  BASELINE_CAPTURE_FAILED: "bad",
  POST_RUN_PASSED: "good",
  POST_RUN_FAILED: "bad",
  POST_RUN_DRIFT: "bad",
  POST_RUN_DRIFT_INFLIGHT: "note",
  POST_RUN_SENSOR_MISSING: "bad",
  LATE_DATA_ARRIVAL: "note",
  RERUN_REJECTED: "bad",
  RERUN_ACCEPTED: "note",
};

function time(text: string | null | undefined): number | null {
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) ? null : at;
}

export function waterfall(run: RunDetail, now: number): Waterfall {
  const rows = run.attempts.flatMap((attempt, index) => attemptRows(run, attempt, run.attempts[index + 1], now));
  const after = afterRow(run);
  if (after.dots.length > 0) rows.push(after);
  const lines = linesOf(run, now);
  const instants = rows.flatMap((row) => [...row.bars.flatMap((bar) => [bar.from, bar.to]), ...row.dots.map((dot) => dot.at)]);
  const from = Math.min(...instants, time(run.firstOpenedAt) ?? now);
  const end = Math.max(...instants, from + 60_000);
  // Of a run that is under way, what is ahead is part of the picture; of one that has ended, only what is near.
  const active = run.word === "waiting" || run.word === "running";
  const far = active ? Number.MAX_SAFE_INTEGER : end + (end - from) * 0.6;
  const to = Math.max(end, ...lines.map((line) => line.at).filter((at) => at <= far));
  return { from, to: to + (to - from) * 0.03, rows, lines };
}

function attemptRows(run: RunDetail, attempt: Attempt, following: Attempt | undefined, now: number): Row[] {
  const opened = time(attempt.openedAt);
  if (opened === null) return [];
  const latest = attempt.attempt === run.attempt;
  const ended = time(attempt.endedAt);
  const passed = time(attempt.passedAt);
  const triggered = time(attempt.triggeredAt);
  const over = ended ?? time(following?.openedAt) ?? now;
  const bars: Bar[] = [bar("wait", opened, passed ?? over, passed === null && ended === null && latest, "waiting for its rules")];
  if (passed !== null && (triggered ?? over) > passed) bars.push(bar("start", passed, triggered ?? over, triggered === null && ended === null && latest, "starting its job"));
  if (triggered !== null) bars.push(bar("job", triggered, over, ended === null && latest, "job"));
  const next = time(following?.openedAt);
  if (ended !== null && next !== null && next - ended > 1000) bars.push(bar("pause", ended, next, false, "pause before the retry"));
  const dots: Dot[] = ended === null ? [] : [{ at: ended, kind: attempt.outcome === "completed" ? "good" : "bad", text: attempt.outcome }];
  const source = attempt.source === null || attempt.source === undefined || attempt.source === "first" ? "" : ` (${attempt.source})`;
  const row: Row = { id: `attempt ${attempt.attempt}`, label: `attempt ${attempt.attempt}${source}`, sub: false, bars, dots };
  return [row, ...ruleRows(run, attempt, passed ?? ended ?? over)];
}

function bar(kind: BarKind, from: number, to: number, open: boolean, text: string): Bar {
  return { kind, from, to: Math.max(to, from), open, text };
}

/** The rules of an attempt: as the event that decided it says, or as they stand while it waits. */
export function rulesOf(run: RunDetail, attempt: number): RuleResult[] {
  const decided = run.events.findLast(
    (event) =>
      (event.type === "VALIDATION_PASSED" || event.type === "VALIDATION_EXHAUSTED") && event.detail?.["attempt"] === attempt,
  );
  const results = decided?.detail?.["results"];
  if (Array.isArray(results)) return results as RuleResult[];
  return attempt === run.attempt ? run.rules : [];
}

function ruleRows(run: RunDetail, attempt: Attempt, until: number): Row[] {
  return rulesOf(run, attempt.attempt).map((rule, index) => {
    const changes = (rule.history ?? []).map((change) => ({ ...change, at: time(change.at) ?? until }));
    const bars = changes.map((change, position) => {
      const end = changes[position + 1]?.at ?? until;
      return bar(change.passed ? "pass" : "fail", change.at, end, false, change.passed ? "passes" : "does not pass");
    });
    const label = rule.field === null ? rule.key : `${rule.key} ${rule.field}`;
    return { id: `${attempt.attempt} ${index} ${rule.key}`, label, sub: true, bars, dots: [] };
  });
}

function afterRow(run: RunDetail): Row {
  const dots = run.events.flatMap((event): Dot[] => {
    const kind = AFTERWARDS[event.type];
    const at = time(event.timestamp);
    return kind === undefined || at === null ? [] : [{ at, kind, text: `${event.type}: ${event.message}` }];
  });
  return { id: "after", label: "after the run", sub: false, bars: [], dots };
}

function linesOf(run: RunDetail, now: number): Line[] {
  const lines: Line[] = [{ at: now, kind: "now", text: "now" }];
  const add = (kind: Line["kind"], text: string, at: string | null | undefined) => {
    const instant = time(at);
    if (instant !== null) lines.push({ at: instant, kind, text });
  };
  add("ready-by", "ready by", run.sla?.readyByAt);
  add("warning", "SLA warning", run.sla?.warningAt ?? run.sla?.relativeWarningAt);
  add("breach", "SLA breach", run.sla?.breachAt ?? run.sla?.relativeBreachAt);
  return lines;
}

/** A tick with its label; `before`: the label stands to the left of it, as there is no room to the right. */
export interface Tick {
  at: number;
  before: boolean;
}

/** The ticks whose labels have room: each takes `width` of the whole axis, which is 1, and none is written over another. */
export function labelled(ticks: readonly number[], from: number, to: number, width: number): Tick[] {
  const found: Tick[] = [];
  let free = 0;
  for (const at of ticks) {
    const place = (at - from) / (to - from);
    const before = place + width > 1;
    const begin = before ? place - width : place;
    if (begin < free) continue;
    found.push({ at, before });
    free = begin + width;
  }
  return found;
}

/** Some round instants for the axis, at most so many. */
export function axisTicks(from: number, to: number, most = 7): number[] {
  const STEPS = [60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];
  const length = (to - from) / 1000;
  const step = (STEPS.find((one) => length / one <= most) ?? Math.ceil(length / most)) * 1000;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  return ticks;
}
