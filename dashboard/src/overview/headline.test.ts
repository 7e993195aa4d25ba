import { describe, expect, it } from "vitest";

import { nextDue, standsText, worst } from "./headline";
import { reasonOf } from "./reason";
import type { Lane, Standing } from "./states";

function lane(id: string, standing: Standing = "done", changes: Partial<Lane> = {}): Lane {
  return { id, standing, errors: [], current: null, sla: null, nextRun: null, ...changes } as unknown as Lane;
}

const NOW = Date.parse("2026-03-03T10:42:00Z");
const current = { schedule: "cron", date: "2026-03-03", word: "waiting", attempt: 1, openedAt: null, since: null, summary: "" };
const next = { schedule: "cron", date: "2026-03-04", startAt: null, opens: "", warningAt: null, breachAt: null };

describe("the headline", () => {
  it("is about the worst, and counts the others", () => {
    const lanes = [lane("a", "failed"), lane("b", "breached"), lane("c", "done"), lane("d", "held")];
    expect(worst(lanes)).toMatchObject({ lane: { id: "b" }, more: 2 });
    expect(worst([lane("a"), lane("b", "waiting")])).toBeNull();
  });

  it("says how late it is, how long is left, or what became of it", () => {
    const sla = (state: "breached" | "at-risk", breachAt: string | null) => ({ sla: { state, warningAt: null, breachAt } });
    expect(standsText(lane("a", "breached", sla("breached", "2026-03-03T10:30:00Z")), NOW)).toBe("is late by 12m");
    expect(standsText(lane("a", "breached", sla("breached", null)), NOW)).toBe("is late");
    expect(standsText(lane("a", "at-risk", sla("at-risk", "2026-03-03T11:00:00Z")), NOW)).toBe("is at risk, with 18m left");
    expect(standsText(lane("a", "at-risk", sla("at-risk", "2026-03-03T10:41:00Z")), NOW)).toBe("is at risk");
    expect((["failed", "held", "missed", "invalid"] as const).map((one) => standsText(lane("a", one), NOW))).toEqual([
      "has failed",
      "is held",
      "was not opened",
      "has an invalid config",
    ]);
  });

  it("gives the reason without the pipeline and period that stand beside it", () => {
    const summary = "the evaluation window of a for 2026-03-03 closed: no sensor rows";
    expect(reasonOf(lane("a", "held", { current: { ...current, word: "held", summary } }))).toBe("the evaluation window closed: no sensor rows");
    expect(reasonOf(lane("a", "failed", { current: { ...current, word: "failed", attempt: 3, summary: "exit 1" } }))).toBe("attempt 3: exit 1");
    expect(reasonOf(lane("a", "done", { current: { ...current, word: "done", attempt: 3, summary: "" } }))).toBe("");
    expect(reasonOf(lane("a", "invalid", { errors: ["job: is missing", "sla: is no object"] }))).toBe("job: is missing; sla: is no object");
  });

  it("tells what comes next: a run that opens, or one that must be done", () => {
    const waits = lane("waits", "waiting", {
      current,
      sla: { state: "pending", warningAt: null, breachAt: "2026-03-03T12:00:00Z" },
    });
    const warned = lane("warned", "at-risk", { current, sla: { state: "at-risk", warningAt: null, breachAt: "2026-03-03T10:50:00Z" } });
    const late = lane("late", "breached", { current, sla: { state: "breached", warningAt: null, breachAt: "2026-03-03T10:30:00Z" } });
    expect(nextDue([waits, warned, late], NOW)).toMatchObject({ lane: { id: "warned" }, what: "must be done by" });
    const opens = lane("opens", "done", { nextRun: { ...next, startAt: "2026-03-03T11:00:00Z" } });
    const past = lane("past", "done", { nextRun: { ...next, startAt: "2026-03-03T10:00:00Z" } });
    expect(nextDue([waits, past], NOW)).toMatchObject({ lane: { id: "waits" }, what: "must be done by", date: "2026-03-03" });
    expect(nextDue([waits, opens, past], NOW)).toMatchObject({ lane: { id: "opens" }, what: "opens", date: "2026-03-04" });
    expect(nextDue([past, lane("none")], NOW)).toBeNull();
  });
});
