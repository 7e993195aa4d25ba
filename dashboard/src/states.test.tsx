// @vitest-environment jsdom
// Every view in every state that does not come from data: loading, refused, not found, failed and tried again, empty.
import { cleanup, fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { answers, controller, never, problem, show } from "./testing";

const VIEWS = [
  ["Overview", "/", "overview"],
  ["Pipeline", "/pipelines/gold", "pipelines/gold"],
  ["Cell", "/pipelines/gold/cell?at=2026-03-03T00:00:00Z&bucket=day", "pipelines/gold/runs"],
  ["Run", "/pipelines/gold/runs/cron/2026-03-03", "pipelines/gold/why"],
  ["Events", "/events", "events"],
  ["SLA", "/sla", "stats/sla"],
  ["Graph", "/graph?root=gold", "graph"],
  ["Hazards", "/hazards", "hazards"],
  ["Operate, dead letters", "/operate", "dlq"],
  ["Operate, tokens", "/operate", "tokens"],
  ["Alerts, deliveries", "/alerts", "alerts"],
  ["Alerts, channels", "/alerts", "alerts/routes"],
  ["Controller", "/controller", "controller"],
] as const;

/** The paths that were asked for. */
function asked(): string[] {
  return controller.asked.map((one) => one.replace(/^\w+ /, "").replace(/\?.*$/, ""));
}

async function seen(text: string | RegExp): Promise<void> {
  await waitFor(() => expect(screen.getAllByText(text).length).toBeGreaterThan(0));
}

beforeEach(() => {
  controller.asked.length = 0;
});

afterEach(cleanup);

describe.each(VIEWS)("%s", (_, path, api) => {
  it("says that it is being read", async () => {
    controller.answer = () => never();
    await show(path);
    await seen(/^Reading .*…$/);
    expect(asked()).toContain(api);
  });

  it.each([
    [500, "the store is locked", "The controller could not answer"],
    [403, "the token ana does not have the scope read", "Not allowed"],
    [404, "there is no pipeline gold: did you mean golden?", "Not found"],
  ])("says what a %i is about, with the request, and tries again", async (status, detail, title) => {
    controller.answer = () => problem(status, detail);
    await show(path);
    await seen(title);
    await seen(detail);
    await seen("Request req-17");
    const before = asked().filter((one) => one === api).length;
    for (const button of screen.getAllByRole("button", { name: "Try again" })) fireEvent.click(button);
    await waitFor(() => expect(asked().filter((one) => one === api).length).toBeGreaterThan(before));
  });

  it("asks who is there when the session is over", async () => {
    const over = vi.fn();
    controller.answer = () => problem(401, "sign in");
    const { onSignedOut } = await import("./api/client");
    const stop = onSignedOut(over);
    await show(path);
    await waitFor(() => expect(over).toHaveBeenCalled());
    stop();
  });
});

describe("nothing to show", () => {
  const lanes = { at: "2026-03-03T10:00:00Z", rate: 1, bucket: "hour", from: "2026-03-02T14:00:00Z", to: "2026-03-03T14:00:00Z", position: "1-1", total: 0, counts: {}, owners: [] };
  const none = { items: [], next: null };
  const alone = { nodes: [{ id: "gold", owner: "", known: true, hidden: false, schedule: "cron", word: null, sla: null }], edges: [], leftOut: 0 };
  it.each([
    ["/events", { events: none }, "No events fit."],
    ["/alerts", { alerts: none }, "No alert was sent yet."],
    ["/alerts?state=dead", { alerts: none }, "No delivery fits."],
    ["/alerts", { "alerts/routes": none }, /None is configured here/],
    ["/", { overview: { ...lanes, ...none } }, "interlock init my-pipelines"],
    ["/", { overview: { ...lanes, ...none } }, "interlock validate my-pipelines"],
    ["/", { overview: { ...lanes, ...none } }, "interlock apply my-pipelines/pipelines"],
    ["/?q=silver", { overview: { ...lanes, ...none } }, "No pipeline matches"],
    ["/sla", { "stats/sla": { weeks: [], items: [], worst: [], runs: 0, late: 0, truncated: false } }, "No run with an SLA has ended in these weeks."],
    ["/graph", {}, "Choose a pipeline to see what it runs after, and what runs after it."],
    ["/graph?root=gold&as=list", { graph: alone }, "It runs after nothing, and nothing runs after it."],
    ["/hazards", { hazards: { ...none, counts: {} } }, "No pipeline has a valid config."],
    ["/operate", { dlq: none }, "None: nothing was given up."],
    ["/operate", { tokens: { items: [] } }, "There are none: the controller answers without one, on this machine only."],
    ["/no/such/page", {}, "No such page"],
  ])("%s says so", async (path, byPath, text) => {
    controller.answer = answers(byPath);
    await show(path);
    await seen(text);
  });

  it("clears the filters that leave nothing", async () => {
    controller.answer = answers({ overview: { ...lanes, ...none } });
    const history = await show("/?q=silver&owner=ana&state=failed");
    fireEvent.click(await screen.findByRole("button", { name: "Clear the filters" }));
    await waitFor(() => expect(history.location.search).toBe(""));
    await seen("No pipelines yet");
  });
});

describe("without the scope", () => {
  const reader = { name: "ana", scopes: ["read"], pipelines: [], owners: [], required: true };
  it.each([
    ["/operate", "Dead letters need the scope operate."],
    ["/operate", "Tokens need the scope admin."],
    ["/alerts", "Alerts need the scope operate."],
  ])("%s names it, and asks for nothing it may not have", async (path, text) => {
    controller.answer = () => never();
    await show(path, reader);
    await seen(text);
    expect(asked().filter((one) => /^(dlq|tokens|alerts)/.test(one))).toEqual([]);
  });

  it("an action is disabled, and names it", async () => {
    controller.answer = () => never();
    await show("/operate", reader);
    for (const [name, scope] of [["Set sensor…", "sensor:write"], ["Report outcome…", "job:write"], ["Rerun…", "operate"], ["Cancel…", "operate"], ["Run it now…", "operate"]]) {
      const button = await screen.findByRole("button", { name: new RegExp(name ?? "") });
      expect(button.textContent).toContain(`needs the scope ${scope}`);
      expect((button as HTMLButtonElement).disabled).toBe(true);
    }
  });
});
