// `make bench-ui`: a thousand pipelines in a browser. Figures are printed; they depend on the machine.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "../browser";
import { chromiumPath } from "../found";
import { Controller } from "../server";

const MINUTES = Number(process.env["HEAP_MINUTES"] ?? 30);

describe.skipIf(chromiumPath() === null)("a thousand pipelines", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    controller = new Controller();
    controller.run("bench.seeded", `${controller.folder}/interlock.db`, "1000", "90");
    await controller.start("--log-level", "error");
  }, 300_000);

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("paints its first lanes, holds few nodes, and keeps its heap", async () => {
    const { page, faults, context } = await open(browser, controller.url);
    const began = performance.now();
    await page.goto(controller.url);
    await page.locator(".row.lane").first().waitFor();
    const painted = performance.now() - began;
    const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
    const session = await context.newCDPSession(page);
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { usedSize } = (await session.send("Runtime.getHeapUsage")) as { usedSize: number };
      return usedSize / 1e6;
    };
    const before = await heap();
    await page.waitForTimeout(MINUTES * 60_000);
    const grown = (await heap()) - before;
    process.stdout.write(`${JSON.stringify({ firstLanesMs: Math.round(painted), nodes, heapGrownMB: Math.round(grown * 10) / 10, minutes: MINUTES })}\n`);
    expect(nodes).toBeLessThan(3000);
    expect(grown).toBeLessThan(20);
    expect(faults).toEqual([]);
  }, (MINUTES + 10) * 60_000);
});
