import { mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { expectAccessible, launch, open, type Watched } from "./browser";
import { chromiumPath } from "./found";
import { rerunRefusedThenForced, sensorSetOnThePage } from "./journeys";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const SHOTS = process.env["SCREENSHOTS"];
// Today, as the controller has it: charts and history reach back 90 days only.
const DATE = new Date(performance.timeOrigin + performance.now()).toISOString().slice(0, 10);

/** Each page, and something that is on it when it is whole. */
const PAGES: [string, string, string][] = [
  ["overview", "/", '[data-lane="gold-revenue"]'],
  ["run", `/pipelines/gold-revenue/runs/stream/${DATE}`, ".waterfall"],
  ["run-never", "/pipelines/gold-revenue/runs/stream/2026-01-01", ".why-sections"],
  ["pipeline", "/pipelines/gold-revenue", ".history .cell"],
  ["events", "/events", ".e-line"],
  ["sla", "/sla", "main h1"],
  ["graph", `/graph?root=gold-revenue&depth=2&date=${DATE}`, ".node"],
  ["graph-list", "/graph?root=gold-revenue&as=list", "main table"],
  ["hazards", "/hazards?pipeline=gold-revenue", ".coverage li"],
  ["operate", "/operate", "main h1"],
  ["alerts", "/alerts", "main h1"],
  ["controller", "/controller", "main figure"],
];

describe.skipIf(chromiumPath() === null)("every page", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    const below = gated("gold-report", { after: [{ pipeline: "gold-revenue" }] });
    controller = await new Controller()
      .pipelines([gated("gold-revenue", { sla: { deadline: "10:00", expectedDuration: "30m" } }), below, gated("bronze")])
      .start();
    await controller.sensor("gold-revenue", "upstream-complete", { status: "ready", date: DATE });
    await controller.sensor("gold-revenue", "row-count", { count: 5000, date: DATE });
    await until(async () => {
      const run = (await (await controller.api("GET", `pipelines/gold-revenue/runs/stream/${DATE}`)).json()) as { word?: string };
      return run.word === "done";
    }, "the run");
    await controller.sensor("bronze", "upstream-complete", { status: "ready" });
    if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  const tabs = new Map<number, Watched>();

  /** A tab of that width, the same for all pages: what is loaded once need not be loaded again. */
  async function kept(width: number): Promise<Watched> {
    const tab = tabs.get(width) ?? (await open(browser, controller.url, { width }));
    tabs.set(width, tab);
    return tab;
  }

  it.each(PAGES)("%s has no fault and no accessibility violation, wide and narrow, light and dark", async (name, path, whole) => {
    for (const width of [1440, 390]) {
      const { page, faults } = await kept(width);
      await page.goto(controller.url + path);
      await page.locator(whole).first().waitFor();
      await page.locator('.live[data-phase="live"]').waitFor();
      // Only the style sheets know of themes.
      for (const theme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: theme });
        await expectAccessible(page);
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        expect(beyond, "nothing reaches beyond the screen").toBeLessThanOrEqual(0);
        if (SHOTS !== undefined) await page.screenshot({ path: join(SHOTS, `${name}-${theme}-${width}.png`) });
      }
      expect(faults).toEqual([]);
    }
  });

  it("reruns: refused without a change, accepted by force, in the controller's own words", async () => {
    await rerunRefusedThenForced(browser, { url: controller.url, pipeline: "gold-revenue", date: DATE });
  });

  it("sets a sensor, and what it leads to is seen", async () => {
    await sensorSetOnThePage(browser, controller.url, "bronze");
  });

  it("says what is not there, with the nearest names", async () => {
    const { page, forgive, faults, context } = await open(browser, controller.url);
    forgive(/404/);
    await page.goto(`${controller.url}/pipelines/gold-revenu`);
    await page.getByText("did you mean gold-revenue").waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });
});
