import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const GONE = /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to load resource|NetworkError|503/;

describe.skipIf(chromiumPath() === null)("live", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    controller = await new Controller().pipelines([gated("gold"), gated("silver"), gated("bronze")]).start();
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("says so when the controller is gone, and goes on when it is back: no event lost, none twice", async () => {
    const { page, faults, forgive, context } = await open(browser, controller.url);
    forgive(GONE);
    const tail = await open(browser, controller.url);
    tail.forgive(GONE);
    await tail.page.goto(`${controller.url}/events`);
    await tail.page.locator('.live[data-phase="live"]').waitFor();
    await page.goto(controller.url);
    await page.locator('.live[data-phase="live"]').waitFor();
    await controller.sensor("gold", "upstream-complete", { status: "ready" });
    await page.locator('[data-lane="gold"] [data-word="waiting"]').waitFor();
    await controller.stop("SIGKILL");
    await page.getByText(/Not live since .*, retrying in/).waitFor();
    expect(await page.locator("#content").getAttribute("data-stale")).toBe("true");
    await controller.start();
    // Before the page is back, something happens.
    await controller.sensor("gold", "row-count", { count: 5000 });
    await page.locator('.live[data-phase="live"]').waitFor();
    await page.locator('[data-lane="gold"] [data-word="done"]').waitFor();
    await page.getByText(/Not live/).waitFor({ state: "detached" });
    // The tail of events, which was open all the time, has each of them once.
    const made = await until(async () => {
      const { items } = (await (await controller.api("GET", "events?limit=100")).json()) as { items: { id: string; type: string }[] };
      return items.some((one) => one.type === "JOB_COMPLETED") && items.map((one) => one.id);
    }, "the end of the run");
    const shown = () => tail.page.locator(".e-line").evaluateAll((lines) => lines.map((line) => line.getAttribute("data-event") ?? ""));
    await until(async () => (await shown()).length >= made.length, "the events on screen");
    expect(await shown()).toEqual(made);
    expect([...faults, ...tail.faults]).toEqual([]);
    await tail.context.close();
    await context.close();
  });

  it("reads one stream for eight tabs, and a visible tab takes over", async () => {
    const context = await browser.newContext({ viewport: { width: 1000, height: 600 } });
    const tabs = [];
    for (let count = 0; count < 8; count += 1) {
      const tab = await open(browser, controller.url, { context });
      await tab.page.goto(controller.url);
      await tab.page.locator('.live[data-phase="live"]').waitFor();
      tabs.push(tab);
    }
    const streams = await until(async () => {
      const text = await (await fetch(`${controller.url}/metrics`)).text();
      return /interlock_event_streams (\d+)/.exec(text)?.[1];
    }, "the number of streams");
    expect(Number(streams)).toBe(1);
    await controller.sensor("silver", "upstream-complete", { status: "ready" });
    for (const tab of tabs) await tab.page.locator('[data-lane="silver"] [data-word="waiting"]').waitFor();
    // The tab that reads is closed: another goes on.
    await tabs[0]?.page.close();
    await controller.sensor("silver", "row-count", { count: 5000 });
    for (const tab of tabs.slice(1)) await tab.page.locator('[data-lane="silver"] [data-word="done"]').waitFor();
    expect(tabs.flatMap((tab) => tab.faults)).toEqual([]);
    await context.close();
  });
});
