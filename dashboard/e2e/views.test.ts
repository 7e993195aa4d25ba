// What views other than the overview do while they are looked at, and while they are not.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller } from "./server";

const GONE = /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to load resource|NetworkError|503/;

/** Let a page believe that its tab is in the background, or in front again. */
async function hide(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

describe.skipIf(chromiumPath() === null)("views", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    const failing = gated("failing", { job: { type: "command", config: { command: ["false"] }, maxCodeRetries: 0 } });
    controller = await new Controller().pipelines([gated("gold"), gated("silver"), failing]).start();
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("shows sensors as they are written, though no event tells of them, and after a gap", async () => {
    const { page, faults, forgive, context } = await open(browser, controller.url);
    await page.goto(`${controller.url}/pipelines/gold`);
    await page.locator('.live[data-phase="live"]').waitFor();
    await page.getByText("Nothing was written yet.").waitFor();
    await controller.sensor("gold", "unread", { pages: 17 });
    await page.getByRole("cell", { name: '{"pages":17}' }).waitFor();
    await controller.sensor("gold", "unread", { pages: 18 });
    await page.getByRole("cell", { name: '{"pages":18}' }).waitFor();
    forgive(GONE);
    await controller.stop("SIGKILL");
    await page.getByText(/Not live since/).waitFor();
    await controller.start();
    await controller.sensor("gold", "unread", { pages: 19 });
    await page.getByRole("cell", { name: '{"pages":19}' }).waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("shows alerts as they are delivered", async () => {
    const { page, faults, context } = await open(browser, controller.url);
    await page.goto(`${controller.url}/alerts`);
    await page.locator('.live[data-phase="live"]').waitFor();
    const before = await page.getByRole("row").count();
    await controller.sensor("failing", "upstream-complete", { status: "ready" });
    await controller.sensor("failing", "row-count", { count: 5000 });
    await page.getByRole("rowheader", { name: "failing" }).first().waitFor();
    expect(await page.getByRole("row").count()).toBeGreaterThan(before);
    await page.getByRole("row").filter({ hasText: "failing" }).getByText("sent").first().waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("draws nothing in a hidden tab, and reads everything again when it is seen", async () => {
    const { page, faults, context } = await open(browser, controller.url);
    const front = await open(browser, controller.url);
    for (const tab of [page, front.page]) {
      await tab.goto(controller.url);
      await tab.locator('[data-lane="silver"]').waitFor();
      await tab.locator('.live[data-phase="live"]').waitFor();
    }
    await hide(page, true);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.evaluate(() => {
      const counted = { changes: 0 };
      (window as unknown as { counted: { changes: number } }).counted = counted;
      new MutationObserver((records) => (counted.changes += records.length)).observe(document.body, {
        childList: true,
        subtree: true,
        attributes: true,
        characterData: true,
      });
    });
    await controller.sensor("silver", "upstream-complete", { status: "ready" });
    await controller.sensor("silver", "row-count", { count: 5000 });
    await front.page.locator('[data-lane="silver"] [data-word="done"]').waitFor();
    expect(await page.evaluate(() => (window as unknown as { counted: { changes: number } }).counted.changes)).toBe(0);
    expect(asked).toEqual([]);
    await hide(page, false);
    await page.locator('[data-lane="silver"] [data-word="done"]').waitFor();
    expect(asked.some((url) => url.includes("/api/v1/overview"))).toBe(true);
    expect([...faults, ...front.faults]).toEqual([]);
    await context.close();
    await front.context.close();
  });
});
