import { describe, expect, it } from "vitest";

import { nextDue, worst } from "./headline";
import type { Lane, Standing } from "./states";

function lane(id: string, standing: Standing = "done", changes: Partial<Lane> = {}): Lane {
  return { id, standing, current: null, sla: null, nextRun: null, ...changes } as Lane;
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

  it("tells what comes next: a run that opens, or one that must be done", () => {
    const waits = lane("waits", "waiting", {
      current,
      sla: { state: "pending", warningAt: null, breachAt: "2026-03-03T12:00:00Z" },
    });
    const opens = lane("opens", "done", { nextRun: { ...next, startAt: "2026-03-03T11:00:00Z" } });
    const past = lane("past", "done", { nextRun: { ...next, startAt: "2026-03-03T10:00:00Z" } });
    expect(nextDue([waits, past], NOW)).toMatchObject({ lane: { id: "waits" }, what: "must be done by", date: "2026-03-03" });
    expect(nextDue([waits, opens, past], NOW)).toMatchObject({ lane: { id: "opens" }, what: "opens", date: "2026-03-04" });
    expect(nextDue([past, lane("none")], NOW)).toBeNull();
  });
});
