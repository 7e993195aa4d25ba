// A thousand pipelines with 90 days behind them: what is not on screen costs nothing, and nothing moves under a hand.
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { Controller, until } from "./server";

const LANES = 1000;
const MOST_NODES = 3000;

interface Overview {
  at: string;
  counts: Record<string, number>;
  items: { id: string; owner: string; standing: string; schedules: string[] }[];
}

const nodes = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

/** Where the lanes on screen are, from top to bottom. */
async function places(page: Page): Promise<string[]> {
  const found = await page
    .locator(".row.lane")
    .evaluateAll((rows) => rows.map((row) => [row.getBoundingClientRect().top, (row as HTMLElement).dataset["lane"] ?? ""] as const));
  return found.sort(([one], [other]) => one - other).map(([top, lane]) => `${Math.round(top)} ${lane}`);
}

describe.skipIf(chromiumPath() === null)("a thousand pipelines", () => {
  let browser: Browser;
  let controller: Controller;
  let overview: Overview;

  beforeAll(async () => {
    browser = await launch();
    controller = new Controller();
    controller.run("bench.seeded", join(controller.folder, "interlock.db"), "--pipelines", String(LANES), "--streamed", "0.5", "--hourly", "0.01");
    await controller.start("--log-level", "error");
    overview = (await (await controller.api("GET", "overview?limit=5000")).json()) as Overview;
  }, 180_000);

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  async function shown(path = "/") {
    const watched = await open(browser, controller.url);
    await watched.page.goto(controller.url + path);
    await watched.page.locator(".row.lane").first().waitFor();
    await watched.page.locator('.live[data-phase="live"]').waitFor();
    return watched;
  }

  it("are all there, with few nodes, wherever they are scrolled to", async () => {
    const { page, faults, context } = await shown();
    expect(Number(await page.getByRole("grid").getAttribute("aria-rowcount"))).toBeGreaterThan(LANES);
    await page.getByRole("heading", { name: "Needs attention" }).waitFor();
    const seen = new Set<string>();
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      await page.locator(".lanes .scroller").evaluate((scroller, to) => {
        scroller.scrollTop = to * scroller.scrollHeight;
      }, part);
      await until(async () => {
        const visible = await page.locator(".row.lane").evaluateAll((rows) => {
          const box = document.querySelector(".lanes .scroller")?.getBoundingClientRect();
          const middle = box === undefined ? 0 : box.top + box.height / 2;
          return rows.some((row) => row.getBoundingClientRect().top <= middle && row.getBoundingClientRect().bottom >= middle);
        });
        return visible;
      }, "rows in the middle of the screen");
      for (const place of await places(page)) seen.add(place.split(" ")[1] ?? "");
      expect(await nodes(page)).toBeLessThan(MOST_NODES);
    }
    const last = overview.items.filter((lane) => lane.standing === "done").map((lane) => lane.id).sort().at(-1) ?? "";
    expect(seen).toContain(last);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("are drawn as pictures over 90 days, with few nodes", async () => {
    const { page, faults, context } = await shown("/?span=90d");
    expect(await page.locator(".row.lane svg").count()).toBeGreaterThan(5);
    expect(await nodes(page)).toBeLessThan(MOST_NODES);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("are filtered by counter, text and owner, and grouped", async () => {
    const { page, faults, context } = await shown();
    const grid = page.getByRole("grid");
    const rows = async () => Number(await grid.getAttribute("aria-rowcount"));
    const standing = ["failed", "breached", "held", "waiting"].find((one) => (overview.counts[one] ?? 0) > 0) ?? "done";
    const counter = page.getByRole("button", { name: new RegExp(`\\d ${standing}$`) });
    await counter.click();
    // With the heads of the columns and of the group.
    await until(async () => (await rows()) === Number.parseInt((await counter.textContent()) ?? "", 10) + 2, `those that are ${standing}`);
    await counter.click();
    await until(async () => (await rows()) > LANES, "all of them again");
    await page.goto(`${controller.url}/?q=gold-orders`);
    const named = overview.items.filter((lane) => lane.id.includes("gold-orders"));
    await until(async () => (await page.locator(".row.lane").count()) > 0 && (await rows()) <= named.length + 3, "those of a name");
    await page.goto(`${controller.url}/?owner=risk-team&group=owner`);
    await page.getByRole("heading", { name: "risk-team" }).waitFor();
    expect(await page.getByRole("heading", { name: "finance-team" }).count()).toBe(0);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("do not move under the pointer, and say that they would", async () => {
    const { page, faults, context } = await shown("/?state=done");
    await page.locator(".row.lane").nth(5).hover();
    const before = await places(page);
    const streamed = new Set(overview.items.filter((lane) => lane.schedules.includes("stream")).map((lane) => lane.id));
    const ids = before.map((place) => place.split(" ")[1] ?? "").filter((id) => streamed.has(id));
    const lane = ids.at(-1) ?? "";
    const hour = overview.at.slice(0, 13);
    await controller.sensor(lane, `upstream-complete#${hour}`, { status: "ready" });
    await page.locator(`[data-lane="${lane}"] [data-word="waiting"]`).waitFor();
    // Others may move, too: the clock opens runs meanwhile.
    const resort = page.getByRole("button", { name: /^\d+ moved, re-sort$/ });
    await resort.waitFor();
    const order = async () => (await places(page)).map((place) => place.split(" ")[1] ?? "");
    expect(await order()).toEqual(before.map((place) => place.split(" ")[1]));
    await resort.click();
    await until(async () => (await order()).indexOf(lane) < ids.length / 2, "the new order");
    expect(faults).toEqual([]);
    await context.close();
  });
});
