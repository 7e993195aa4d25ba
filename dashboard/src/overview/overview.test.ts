import { describe, expect, it } from "vitest";

import type { EventView, Told } from "../live/stream";
import { columnLabels, columnOfRun, columnsFor, endOf, withNow } from "./columns";
import { arrange, compareLanes, entries, moved } from "./order";
import { applyEvents, isOld, replaceLanes } from "./reducer";
import { shapesOf } from "./shapes";
import type { Lane, Overview, Standing } from "./states";

const NOW = Date.parse("2026-03-03T10:42:00Z");

export function lane(id: string, standing: Standing = "done", changes: Partial<Lane> = {}): Lane {
  return {
    id,
    owner: "team-a",
    timezone: "UTC",
    valid: true,
    errors: [],
    dryRun: false,
    schedules: ["cron"],
    after: [],
    standing,
    cells: "dddddd",
    marks: "",
    multiple: {},
    current: null,
    sla: null,
    nextRun: null,
    ...changes,
  };
}

function overview(items: Lane[], changes: Partial<Overview> = {}): Overview {
  const counts: Partial<Record<Standing, number>> = {};
  for (const one of items) counts[one.standing] = (counts[one.standing] ?? 0) + 1;
  return {
    at: "2026-03-03T10:42:00Z",
    rate: 1,
    bucket: "hour",
    from: "2026-03-03T06:00:00Z",
    to: "2026-03-03T12:00:00Z",
    position: "100-1000",
    total: items.length,
    counts,
    owners: [],
    items,
    next: null,
    ...changes,
  };
}

function told(seq: number, type: string, pipelineId: string, changes: Partial<EventView> = {}): Told {
  const event = {
    id: `${seq}~${pipelineId}`,
    type,
    severity: "info",
    pipelineId,
    scheduleId: "cron",
    date: "2026-03-03T10",
    message: "it happened",
    timestamp: "2026-03-03T10:43:00Z",
    detail: {},
    ...changes,
  } as EventView;
  return { position: `${seq}-1`, event };
}

describe("columns", () => {
  it("end a little ahead of now, and place hourly runs by their period, others by the hour they opened", () => {
    const columns = columnsFor("24h", NOW);
    expect(columns.count).toBe(24);
    expect(new Date(endOf(columns)).toISOString()).toBe("2026-03-03T14:00:00.000Z");
    expect(columnOfRun(columns, "2026-03-03T05", "America/New_York", null)).toBe(20);
    expect(columnOfRun(columns, "2026-03-03", "UTC", "2026-03-03T09:59:00Z")).toBe(19);
    expect(columnOfRun(columns, "2026-03-03", "UTC", null)).toBeNull();
    expect(columnOfRun(columns, "2026-01-01T00", "UTC", null)).toBeNull();
  });

  it("leave out the labels that \"now\" would be written over", () => {
    const hours = columnLabels({ ...columnsFor("24h", NOW) }, "UTC");
    expect(withNow(hours, "hour", null)).toEqual(hours);
    const shown = withNow(hours, "hour", 20); // 10:00; the labels of 09 and 12 stand beside it
    expect(shown[20]).toBe("now");
    expect(shown.slice(17, 24)).toEqual(["", "", "09", "now", "", "", ""]);
    expect(shown.slice(0, 17)).toEqual(hours.slice(0, 17));
    const days = columnLabels(columnsFor("30d", NOW), "UTC");
    expect(days[27]).not.toBe("");
    expect(withNow(days, "day", 29).slice(24)).toEqual(["", "", "", "", "", "now"]);
  });

  it("of half-hour zones hold the hour they begin in", () => {
    const columns = columnsFor("6h", NOW);
    expect(columnOfRun(columns, "2026-03-03T15", "Asia/Kolkata", null)).toBe(
      columnOfRun(columns, "2026-03-03T09", "UTC", null),
    );
  });

  it("of days go by the date itself", () => {
    const columns = columnsFor("14d", NOW);
    expect(columnOfRun(columns, "2026-03-03T23", "Pacific/Auckland", null)).toBe(13);
    expect(columnOfRun(columns, "2026-02-18", "UTC", null)).toBe(0);
    expect(columnLabels(columns, "UTC")[13]).toBe("03-03");
    expect(columnLabels(columnsFor("24h", NOW), "UTC")).toContain("09");
  });
});

describe("events", () => {
  it("turn a lane through its life", () => {
    let shown = overview([lane("a", "done", { cells: "dddd--" })]);
    const after = (one: Told) => {
      const { overview: next, touched } = applyEvents(shown, [one]);
      expect(touched).toEqual(new Set(["a"]));
      shown = next;
      return next.items[0];
    };
    expect(after(told(101, "TRIGGER_STARTED", "a", { detail: { attempt: 1 } }))).toMatchObject({
      cells: "ddddw-",
      standing: "waiting",
      current: { word: "waiting", attempt: 1, date: "2026-03-03T10" },
    });
    expect(after(told(102, "SLA_WARNING", "a"))).toMatchObject({ marks: "----w-", standing: "at-risk" });
    expect(after(told(103, "JOB_TRIGGERED", "a"))).toMatchObject({ cells: "ddddr-", standing: "at-risk", current: { word: "running" } });
    expect(after(told(104, "SLA_BREACH", "a"))).toMatchObject({ marks: "----b-", standing: "breached" });
    expect(after(told(105, "JOB_FAILED", "a"))).toMatchObject({ cells: "ddddw-", standing: "breached" });
    expect(after(told(106, "RETRY_EXHAUSTED", "a"))).toMatchObject({ cells: "ddddf-", current: { word: "failed" } });
    expect(after(told(107, "JOB_COMPLETED", "a"))).toMatchObject({ cells: "ddddd-", standing: "done" });
    expect(shown.counts).toMatchObject({ done: 1, breached: 0, waiting: 0, "at-risk": 0 });
  });

  it("that are older than what is shown change nothing", () => {
    const shown = overview([lane("a")]);
    expect(applyEvents(shown, [told(100, "TRIGGER_STARTED", "a")]).overview).toBe(shown);
    expect(isOld({ ...told(0, "X", "a"), position: "0-1" }, shown)).toBe(false);
    expect(isOld({ ...told(0, "X", "a", { timestamp: "2026-03-03T10:41:00Z" }), position: "0-1" }, shown)).toBe(true);
  });

  it("of a run that is not the lane's own change its cell, and leave the rest to the controller", () => {
    const current = { schedule: "cron", date: "2026-03-03T07", word: "failed", attempt: 3, openedAt: null, since: null, summary: "exit 1" };
    const shown = overview([lane("a", "failed", { cells: "-fddw-", current })]);
    const { overview: next, touched } = applyEvents(shown, [told(101, "JOB_COMPLETED", "a")]);
    expect(next.items[0]).toMatchObject({ cells: "-fddd-", standing: "failed", current });
    expect(touched).toEqual(new Set(["a"]));
  });

  it("of several runs in one cell are left to the controller", () => {
    const shown = overview([lane("a", "done", { multiple: { "4": 3 } })]);
    expect(applyEvents(shown, [told(101, "TRIGGER_STARTED", "a")]).overview.items[0]?.cells).toBe("dddddd");
  });

  it("keep the lanes that they are not about", () => {
    const shown = overview([lane("a"), lane("b")]);
    const { overview: next } = applyEvents(shown, [told(101, "TRIGGER_STARTED", "a")]);
    expect(next.items[1]).toBe(shown.items[1]);
    expect(applyEvents(shown, [told(102, "JOB_STARTED", "zzz")])).toMatchObject({ overview: shown, unknown: true });
    expect(applyEvents(shown, [told(103, "PIPELINE_REMOVED", "a")]).unknown).toBe(true);
  });

  it("are completed by lanes that were read again", () => {
    const shown = overview([lane("a", "waiting"), lane("b")]);
    const fresh = overview([lane("a", "done")]);
    expect(replaceLanes(shown, fresh).counts).toMatchObject({ waiting: 0, done: 2 });
    expect(replaceLanes(shown, overview([lane("c")]))).toBe(shown);
    expect(replaceLanes(shown, overview([lane("a", "done", { cells: "d" })]))).toBe(shown);
  });
});

describe("the order", () => {
  const late = lane("late", "breached", { sla: { state: "breached", warningAt: null, breachAt: "2026-03-03T09:00:00Z" } });
  const later = lane("a-later", "breached", { sla: { state: "breached", warningAt: null, breachAt: "2026-03-03T08:00:00Z" } });

  it("is worst first, of those the earliest breach, then by name", () => {
    const lanes = [lane("z"), lane("b", "waiting"), late, lane("f", "failed"), later, lane("a")];
    expect([...lanes].sort(compareLanes).map((one) => one.id)).toEqual(["a-later", "late", "f", "b", "a", "z"]);
    const rows = entries(lanes, arrange(lanes, "none"));
    expect(rows.map((row) => (row.kind === "heading" ? `${row.title} (${row.count})` : row.id))).toEqual([
      "Needs attention (3)",
      "a-later",
      "late",
      "f",
      "All (3)",
      "b",
      "a",
      "z",
    ]);
  });

  it("groups by owner", () => {
    const lanes = [lane("a", "done", { owner: "y" }), lane("b", "failed", { owner: "" }), lane("c", "failed", { owner: "y" })];
    expect(arrange(lanes, "owner").map((place) => `${place.group} ${place.id}`)).toEqual(["no owner b", "y c", "y a"]);
  });

  it("is kept until somebody asks: what moved is counted", () => {
    const before = [lane("a"), lane("b"), lane("c"), lane("d", "waiting")];
    const places = arrange(before, "none");
    const after = [lane("a", "failed"), lane("b"), lane("c", "waiting"), lane("d")];
    expect(moved(places, arrange(before, "none"))).toBe(0);
    expect(moved(places, arrange(after, "none"))).toBe(3);
    expect(entries([...after, lane("new")], places).map((row) => row.id)).toEqual(["heading All", "d", "a", "b", "c", "heading New", "new"]);
    expect(entries([lane("a")], places).map((row) => row.id)).toEqual(["heading All", "a"]);
  });
});

it("draws a path a state, and marks", () => {
  const shapes = shapesOf("dd-f", "---b", 10, 16);
  expect(shapes.map((shape) => shape.name)).toEqual(["done", "failed", "mark-breached"]);
  expect(shapes[0]?.path.match(/M/g)).toHaveLength(2);
});
