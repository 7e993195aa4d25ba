// @vitest-environment jsdom
// Two hundred events a second: only the lanes that they speak of are drawn again, and nothing of the past is kept.
import { createMemoryHistory, createRootRoute, createRouter, RouterProvider } from "@tanstack/react-router";
import { act, cleanup, render, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { LaneGrid } from "./LaneGrid";
import type { LaneProps } from "./LaneRow";
import type { Lane, Overview } from "./states";

const drawn: LaneProps[] = [];

vi.mock("./LaneCells", () => ({
  LaneCells: (props: LaneProps) => {
    drawn.push(props);
    return null;
  },
}));

function lane(id: string, cells: string): Lane {
  return { id, owner: "", timezone: "UTC", valid: true, errors: [], dryRun: false, schedules: ["cron"], after: [], standing: "done", cells, marks: "", multiple: {}, current: null, sla: null, nextRun: null } as unknown as Lane;
}

function overview(items: Lane[]): Overview {
  return { at: "2026-03-03T10:42:00Z", rate: 1, bucket: "hour", from: "2026-03-03T06:00:00Z", to: "2026-03-03T12:00:00Z", position: "1-1", total: items.length, counts: { done: items.length }, owners: [], items, next: null } as unknown as Overview;
}

beforeEach(() => {
  window.matchMedia = ((media: string) => ({ matches: false, media })) as never;
  // jsdom has no layout: the rows on screen are those of a box of this size.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(600);
  vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(900);
  window.scrollTo = () => undefined;
});

afterEach(() => {
  vi.restoreAllMocks();
  cleanup();
});

it("draws a lane again when something of it changed, and hands its cells nothing that is made anew", async () => {
  const [gold, silver] = [lane("gold", "dddddd"), lane("silver", "dddddd")];
  let change: (next: Overview) => void = () => undefined;
  const Page = () => {
    const [shown, setShown] = useState(overview([gold, silver]));
    change = setShown;
    return <LaneGrid overview={shown} group="none" selected={undefined} onSelect={() => undefined} onScreen={{ current: [] }} filtered />;
  };
  const router = createRouter({ routeTree: createRootRoute({ component: Page }), history: createMemoryHistory() });
  render(<RouterProvider router={router as never} />);
  await screen.findByText("silver");
  const first = new Map(drawn.map((props) => [props.lane.id, props]));
  drawn.length = 0;
  for (const cells of ["dddddr", "dddddf"]) act(() => change(overview([gold, lane("silver", cells)])));
  expect(drawn.map(({ lane: { id, cells } }) => [id, cells])).toEqual([["silver", "dddddr"], ["silver", "dddddf"]]);
  for (const { columns, onFocusCell } of drawn) {
    expect(columns).toBe(first.get("gold")?.columns);
    expect(onFocusCell).toBe(first.get("gold")?.onFocusCell);
  }
});
