import { describe, expect, it } from "vitest";

import type { Schemas } from "../api/client";
import { byDay } from "./days";
import { readersOf, schedulesOf, zoneOfDocument } from "./zone";

const DOCUMENT = {
  schedule: { cron: "0 8 * * *", timezone: "America/New_York", trigger: { key: "up" } },
  validation: { rules: [{ key: "row-count" }, { key: "up" }] },
  postRun: { rules: [{ key: "output" }] },
};

describe("a pipeline's document", () => {
  it("says what opens its runs, and who reads a sensor", () => {
    expect(schedulesOf(DOCUMENT)).toEqual(["cron 0 8 * * * America/New_York or sensor up"]);
    expect(schedulesOf({ schedules: [{ id: "a", cron: "* * * * *" }, { id: "b", include: {} }] })).toEqual(["cron * * * * *", "inclusion dates"]);
    expect(zoneOfDocument(DOCUMENT)).toBe("America/New_York");
    expect(zoneOfDocument({})).toBe("UTC");
    expect(readersOf(DOCUMENT, "up")).toEqual(["trigger", "rules"]);
    expect(readersOf(DOCUMENT, "row-count#2026-03-03")).toEqual(["rules"]);
    expect(readersOf(DOCUMENT, "output")).toEqual(["post-run"]);
    expect(readersOf(DOCUMENT, "row-counts")).toEqual([]);
    expect(readersOf({ validation: "nonsense", schedule: 7 }, "x")).toEqual([]);
  });
});

it("puts runs into their days, and keeps the days between", () => {
  const run = (date: string) => ({ date }) as Schemas["TrendRun"];
  const days = byDay([run("2026-02-28T10"), run("2026-02-28T11"), run("2026-03-02")]);
  expect(days.map((day) => [day.date, day.runs.length])).toEqual([
    ["2026-02-28", 2],
    ["2026-03-01", 0],
    ["2026-03-02", 1],
  ]);
  expect(byDay([])).toEqual([]);
});
