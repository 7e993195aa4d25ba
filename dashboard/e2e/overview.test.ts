import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { waitingTurnsDone } from "./journeys";
import { gated } from "./pipelines";
import { Controller } from "./server";

describe.skipIf(chromiumPath() === null)("the overview", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    controller = await new Controller().pipelines([gated("gold-revenue"), gated("silver-orders")]).start();
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("turns a waiting run into a done one, on screen, by a sensor write", async () => {
    await waitingTurnsDone(browser, controller.url, "gold-revenue", (...written) => controller.sensor(...written));
  });

  it("serves the shell for unknown paths, and 404 for unknown assets", async () => {
    const { page, faults } = await open(browser, controller.url);
    await page.goto(`${controller.url}/no/such/page`);
    await page.getByText("No such page").waitFor();
    expect(faults).toEqual([]);
    expect((await fetch(`${controller.url}/assets/gone-12345678.js`)).status).toBe(404);
    expect((await fetch(`${controller.url}/api/none`)).status).toBe(404);
  });

  it("drops a bad parameter with a notice, and keeps good ones", async () => {
    const { page, faults } = await open(browser, controller.url);
    await page.goto(`${controller.url}/?span=9y&owner=analytics-team`);
    await page.locator('[data-lane="gold-revenue"]').waitFor();
    await page.getByText("The address had a value for “span”").waitFor();
    expect(await page.locator("select").nth(1).inputValue()).toBe("analytics-team");
    expect(faults).toEqual([]);
  });
});
