// @vitest-environment jsdom
// What a reader does to the page as a whole: filters in the address and Back, keys, bad addresses, broken configs.
import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { notices } from "./shell/notices";
import { controller, json, never, show } from "./testing";

function lane(id: string, changes: object = {}) {
  return { id, owner: "", timezone: "UTC", valid: true, errors: [], dryRun: false, schedules: ["cron"], after: [], standing: "done", cells: "dddddd", marks: "", multiple: {}, current: null, sla: null, nextRun: null, ...changes };
}

const FAILED = { schedule: "cron", date: "2026-03-03", word: "failed", attempt: 1, openedAt: null, since: null, summary: "exit 1" };
const BROKEN = lane("broken", { valid: false, standing: "invalid", errors: ["job: is missing", "sla: is no object"] });

function overview(items: object[]) {
  const counts = { failed: 1, done: items.length - 1 };
  return { at: "2026-03-03T10:42:00Z", rate: 1, bucket: "hour", from: "2026-03-03T06:00:00Z", to: "2026-03-03T12:00:00Z", position: "1-1", total: items.length, counts, owners: ["ana"], items, next: null };
}

beforeEach(() => {
  controller.asked.length = 0;
  controller.answer = (url) =>
    url.pathname === "/api/v1/overview" ? json(overview([lane("gold", { standing: "failed", current: FAILED }), lane("silver")])) : never();
});

afterEach(() => {
  notices.snapshot().forEach((one) => notices.dismiss(one));
  cleanup();
});

/** The lanes are there: the sentence above them is, whose rows jsdom, without a layout, does not draw. */
async function lanes(): Promise<void> {
  await screen.findByRole("grid", { name: "Pipelines" });
}

describe("the address", () => {
  it.each([
    ["/?span=9y&owner=ana", "span"],
    ["/events?severity=fatal", "severity"],
    ["/sla?weeks=99", "weeks"],
    ["/graph?depth=7", "depth"],
    ["/pipelines/gold?days=31", "days"],
    ["/pipelines/gold/runs/cron/2026-03-03?tab=nothing", "tab"],
    ["/controller?zone=mars", "zone"],
    ["/alerts?state=lost", "state"],
  ])("%s loses what cannot be read, with a notice that can be dismissed", async (path, name) => {
    await show(path);
    const notice = await screen.findByText(new RegExp(`The address had a value for “${name}”`));
    fireEvent.click(screen.getByRole("button", { name: "Dismiss" }));
    await waitFor(() => expect(notice.isConnected).toBe(false));
  });

  it("has the filters, and Back takes them back; nothing old is shown under a new filter", async () => {
    const history = await show("/");
    await lanes();
    controller.answer = () => never();
    fireEvent.click(screen.getByRole("button", { name: "1 failed" }));
    await waitFor(() => expect(history.location.search).toBe("?state=failed"));
    await screen.findByText("Reading the pipelines…");
    expect(screen.queryByRole("grid")).toBeNull();
    expect(controller.asked.at(-1)).toContain("state=failed");
    history.back();
    await waitFor(() => expect(history.location.search).toBe(""));
    await lanes();
  });

  it.each([
    ["/events", "Severity", "error", "?severity=error"],
    ["/events", "How far back", "24h", "?since=24h"],
    ["/alerts", "State", "dead", "?state=dead"],
    ["/?span=7d", "Group", "owner", "?span=7d&group=owner"],
  ])("%s keeps what is chosen as %s, and Back takes it back", async (path, label, value, search) => {
    const history = await show(path);
    const before = history.location.search;
    fireEvent.change(await screen.findByLabelText(label), { target: { value } });
    await waitFor(() => expect(history.location.search).toBe(search));
    history.back();
    await waitFor(() => expect(history.location.search).toBe(before));
  });

  it("goes back from a number of weeks to the one before", async () => {
    const history = await show("/sla");
    fireEvent.click(await screen.findByRole("button", { name: "4 weeks" }));
    await waitFor(() => expect(history.location.search).toBe("?weeks=4"));
    history.back();
    await waitFor(() => expect(history.location.search).toBe(""));
  });

  it.each([
    ["2026-03-03T08", "2026-03-03T10"],
    ["2026-03-02", "2026-03-03"],
  ])("of a cell without a run, of a pipeline that has run for %s, leads to the period %s", async (ran, period) => {
    controller.answer = (url) => {
      if (url.pathname === "/api/v1/pipelines/gold") return json({ id: "gold", schedules: ["cron"], document: {} });
      if (url.pathname === "/api/v1/pipelines/gold/runs") return json({ items: [{ pipeline: "gold", schedule: "cron", date: ran, openedAt: "2026-03-03T09:00:00Z" }], next: null });
      return never();
    };
    const history = await show("/pipelines/gold/cell?at=2026-03-03T10:00:00.000Z&bucket=hour");
    await waitFor(() => expect(history.location.pathname).toBe(`/pipelines/gold/runs/cron/${period}`));
  });

  it("has the zone, on every page", async () => {
    const history = await show("/");
    await lanes();
    fireEvent.change(screen.getByLabelText("Zone"), { target: { value: "utc" } });
    await waitFor(() => expect(history.location.search).toBe("?zone=utc"));
    fireEvent.click(screen.getByRole("link", { name: "SLA" }));
    await waitFor(() => expect(history.location.href).toBe("/sla?zone=utc"));
  });
});

describe("keys", () => {
  const press = (key: string) => fireEvent.keyDown(document.body, { key });

  it("go to the search, from lane to lane, to the run of a lane, and list themselves", async () => {
    const history = await show("/");
    await lanes();
    press("/");
    expect(document.activeElement).toBe(screen.getByRole("searchbox", { name: "Search pipelines" }));
    (document.activeElement as HTMLElement).blur();
    press("j");
    await waitFor(() => expect(history.location.search).toBe("?sel=gold"));
    press("j");
    await waitFor(() => expect(history.location.search).toBe("?sel=silver"));
    press("k");
    await waitFor(() => expect(history.location.search).toBe("?sel=gold"));
    press("?");
    const keys = screen.getByRole("dialog", { name: "Keys" });
    expect(keys.textContent).toContain("next and previous pipeline");
    fireEvent.click(screen.getByRole("button", { name: "Close" }));
    press("w");
    await waitFor(() => expect(history.location.pathname).toBe("/pipelines/gold/runs/cron/2026-03-03"));
  });

  it("are letters while somebody types", async () => {
    const history = await show("/");
    await lanes();
    fireEvent.keyDown(screen.getByRole("searchbox", { name: "Search pipelines" }), { key: "j" });
    fireEvent.keyDown(document.body, { key: "j", ctrlKey: true });
    expect(history.location.search).toBe("");
  });
});

describe("the first sentence", () => {
  it("says what is worst, why, and how many more", async () => {
    controller.answer = (url) =>
      url.pathname === "/api/v1/overview" ? json(overview([lane("gold", { standing: "failed", current: FAILED }), BROKEN, lane("silver")])) : never();
    await show("/");
    await lanes();
    const said = document.querySelector(".headline")?.textContent;
    expect(said).toContain("gold for 2026-03-03 has failed: exit 1. 1 more needs attention.");
  });

  it("names an invalid config with its error", async () => {
    controller.answer = (url) => (url.pathname === "/api/v1/overview" ? json(overview([BROKEN])) : never());
    await show("/");
    await lanes();
    expect(document.querySelector(".headline")?.textContent).toContain("broken has an invalid config: job: is missing; sla: is no object.");
  });

  it("says that all is well, and how the page knows", async () => {
    const well = overview([lane("silver")]);
    controller.answer = (url) => {
      if (url.pathname === "/api/v1/overview") return json(well);
      if (url.pathname === "/api/v1/controller") return json({ version: "1", watchdog: { lastAt: "2026-03-03T10:40:00Z", failedChecks: [] }, troubles: [] });
      return never();
    };
    await show("/");
    await screen.findByText("All is well");
    await waitFor(() => expect(document.querySelector(".well")?.textContent).toContain("the watchdog last looked"));
    expect(document.querySelector(".well")?.textContent).toContain("this page is not live");
  });
});
