import { describe, expect, it } from "vitest";

import type { Schemas } from "../api/client";
import { axisTicks, labelled, rulesOf, waterfall } from "./waterfall";

type RunDetail = Schemas["RunDetail"];

const at = (minute: number) => new Date(Date.parse("2026-03-03T09:00:00Z") + minute * 60_000).toISOString();
const ms = (minute: number) => Date.parse(at(minute));

function attempt(number: number, changes: Partial<Schemas["Attempt"]>): Schemas["Attempt"] {
  return { attempt: number, source: "first", openedBy: "", requestedBy: "", reason: "", runId: "", jobId: "", outcome: "", ...changes };
}

function run(changes: Partial<RunDetail>): RunDetail {
  return {
    pipeline: "gold",
    schedule: "cron",
    date: "2026-03-03",
    status: "PENDING",
    word: "waiting",
    attempt: 1,
    source: "first",
    openedAt: at(0),
    updatedAt: at(0),
    message: "",
    configVersion: "v",
    openedBy: "cron",
    requestedBy: "",
    claimedBy: "",
    runId: "",
    jobId: "",
    firstOpenedAt: at(0),
    attempts: [],
    rules: [],
    rulesLive: true,
    jobLog: [],
    reruns: [],
    events: [],
    budgets: {},
    sla: null,
    ...changes,
  };
}

const RULE: Schemas["RuleResult"] = {
  key: "row-count",
  check: "gte",
  passed: false,
  actual: 940,
  expected: 1000,
  reason: "count is 940",
  field: "count",
  since: at(0),
  history: [
    { at: at(0), passed: false, actual: null },
    { at: at(5), passed: true, actual: 2000 },
    { at: at(8), passed: false, actual: 940 },
  ],
};

describe("the waterfall of a run", () => {
  it("shows a waiting attempt, the verdicts of its rules, and the SLA ahead", () => {
    const detail = run({
      attempts: [attempt(1, { openedAt: at(0) })],
      rules: [RULE],
      sla: { deadline: "10:00", readyBy: "", critical: false, backFill: false, fired: {}, warningAt: at(30), breachAt: at(60) },
    });
    const picture = waterfall(detail, ms(10));
    expect(picture.from).toBe(ms(0));
    expect(picture.to).toBeGreaterThan(ms(60));
    const [first, rule] = picture.rows;
    expect(first?.bars).toEqual([{ kind: "wait", from: ms(0), to: ms(10), open: true, text: "waiting for its rules" }]);
    expect(rule?.label).toBe("row-count count");
    expect(rule?.bars.map((bar) => [bar.kind, bar.from, bar.to])).toEqual([
      ["fail", ms(0), ms(5)],
      ["pass", ms(5), ms(8)],
      ["fail", ms(8), ms(10)],
    ]);
    expect(picture.lines.map((line) => line.kind)).toEqual(["now", "warning", "breach"]);
  });

  it("shows attempts, the pause between them, and what came after", () => {
    const detail = run({
      word: "done",
      attempt: 2,
      attempts: [
        attempt(1, { openedAt: at(0), passedAt: at(2), triggeredAt: at(3), endedAt: at(10), outcome: "failed" }),
        attempt(2, { source: "job-fail-transient", openedAt: at(12), passedAt: at(12), triggeredAt: at(12), endedAt: at(20), outcome: "completed" }),
      ],
      events: [
        { id: "1", type: "POST_RUN_DRIFT", severity: "warning", pipelineId: "gold", scheduleId: "cron", date: "2026-03-03", message: "drifted", timestamp: at(25), detail: {} },
      ],
      sla: { deadline: "", readyBy: "", critical: false, backFill: false, fired: {}, breachAt: at(900) },
    });
    const picture = waterfall(detail, ms(500));
    expect(picture.rows.map((row) => row.label)).toEqual(["attempt 1", "attempt 2 (job-fail-transient)", "after the run"]);
    expect(picture.rows[0]?.bars.map((bar) => bar.kind)).toEqual(["wait", "start", "job", "pause"]);
    expect(picture.rows[0]?.dots).toEqual([{ at: ms(10), kind: "bad", text: "failed" }]);
    expect(picture.rows[1]?.dots[0]?.kind).toBe("good");
    expect(picture.rows[2]?.dots[0]?.kind).toBe("bad");
    // The breach and the present are hours away from a run of minutes: they are not part of its picture.
    expect(picture.to).toBeLessThan(ms(60));
  });

  it("takes the rules of an old attempt from the event that decided it", () => {
    const results = [{ ...RULE, passed: true }];
    const detail = run({
      attempt: 2,
      rules: [RULE],
      events: [
        { id: "1", type: "VALIDATION_PASSED", severity: "info", pipelineId: "gold", scheduleId: "cron", date: "2026-03-03", message: "", timestamp: at(5), detail: { attempt: 1, results } },
      ],
    });
    expect(rulesOf(detail, 1)[0]?.passed).toBe(true);
    expect(rulesOf(detail, 2)).toEqual([RULE]);
    expect(rulesOf(detail, 3)).toEqual([]);
  });

  it("survives a run that knows nothing of its attempts", () => {
    const picture = waterfall(run({ attempts: [attempt(1, {})] }), ms(1));
    expect(picture.rows).toEqual([]);
    expect(picture.to).toBeGreaterThan(picture.from);
  });
});

it("labels no tick over another, and turns a label at the end around", () => {
  expect(labelled([0, 50, 90], 0, 100, 0.2)).toEqual([
    { at: 0, before: false },
    { at: 50, before: false },
    { at: 90, before: true },
  ]);
  expect(labelled([40, 60, 90], 0, 100, 0.26).map((tick) => tick.at)).toEqual([40]);
  expect(labelled([10, 90], 0, 100, 0.26)).toEqual([
    { at: 10, before: false },
    { at: 90, before: true },
  ]);
  expect(labelled([], 0, 100, 0.26)).toEqual([]);
});

it("has few and round ticks", () => {
  const ticks = axisTicks(ms(0), ms(60));
  expect(ticks.map((tick) => new Date(tick).toISOString().slice(11, 16))).toEqual(["09:00", "09:10", "09:20", "09:30", "09:40", "09:50", "10:00"]);
  expect(axisTicks(0, 90 * 86_400_000).length).toBeLessThanOrEqual(14);
});
