import { describe, expect, it } from "vitest";

import type { EventView, Told } from "../live/stream";
import { readEventSearch, sinceInstant } from "./eventSearch";
import { append, fits, prepend } from "./feed";
import { EVENT_TYPES } from "./types";
import { Reader } from "../url/read";

function event(id: string, changes: Partial<EventView> = {}): EventView {
  return {
    id,
    type: "JOB_COMPLETED",
    severity: "info",
    pipelineId: "gold",
    scheduleId: "cron",
    date: "2026-03-03",
    message: "the job completed",
    timestamp: "2026-03-03T10:00:00Z",
    detail: {},
    ...changes,
  };
}

const told = (...events: EventView[]): Told[] => events.map((one) => ({ position: "1-1", event: one }));

describe("the tail of events", () => {
  it("is newest first, without repeats, and bounded", () => {
    const known = [event("b"), event("a")];
    const next = prepend(known, told(event("b"), event("c"), event("d")), {});
    expect(next.map((one) => one.id)).toEqual(["d", "c", "b", "a"]);
    expect(prepend(known, told(event("a")), {})).toBe(known);
    expect(prepend(known, told(event("c")), {}, 2).map((one) => one.id)).toEqual(["c", "b"]);
    expect(append(known, [event("a"), event("0")]).map((one) => one.id)).toEqual(["b", "a", "0"]);
  });

  it("takes what fits the filter, as the controller would", () => {
    const failed = event("x", { type: "JOB_FAILED", severity: "error", message: "Exit 1" });
    expect(fits(failed, { severity: "warning", q: "exit", pipeline: "gold", type: "JOB_FAILED" })).toBe(true);
    expect(fits(failed, { severity: "critical" })).toBe(false);
    expect(fits(failed, { pipeline: "silver" })).toBe(false);
    expect(fits(failed, { type: "JOB_COMPLETED" })).toBe(false);
    expect(fits(failed, { q: "nothing" })).toBe(false);
  });

  it("reads its filter from the address", () => {
    const reader = new Reader({ severity: "fatal", since: "24h", type: "JOB_FAILED" });
    expect(readEventSearch(reader)).toEqual({ since: "24h", type: "JOB_FAILED" });
    expect(reader.dropped).toEqual(["severity"]);
    expect(sinceInstant("1h", Date.parse("2026-03-03T10:00:00Z"))).toBe("2026-03-03T09:00:00.000Z");
    expect(sinceInstant(undefined, 0)).toBeUndefined();
    expect(new Set(EVENT_TYPES).size).toBe(EVENT_TYPES.length);
  });
});
