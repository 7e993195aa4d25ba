// The page with five thousand lanes: only those on screen are there.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "../browser";
import { chromiumPath } from "../found";
import type { Controller } from "../server";
import { record } from "./figures";
import { seededController } from "./seeded";

describe.skipIf(chromiumPath() === null)("five thousand lanes", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    controller = await seededController(5000, 0.2);
  }, 600_000);

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("holds few nodes, wherever it is scrolled to", async () => {
    const { page, context, faults } = await open(browser, controller.url);
    await page.goto(controller.url);
    await page.locator(".row.lane").first().waitFor();
    let most = 0;
    for (const part of [0, 0.5, 1]) {
      await page.locator(".lanes .scroller").evaluate((scroller, to) => {
        scroller.scrollTop = to * scroller.scrollHeight;
      }, part);
      await page.waitForTimeout(300);
      most = Math.max(most, await page.evaluate(() => document.querySelectorAll("*").length));
    }
    record({ what: "nodes in the page", size: "5,000 lanes x 24", value: most, unit: "", goal: 3000 });
    expect(faults).toEqual([]);
    await context.close();
  }, 120_000);
});
