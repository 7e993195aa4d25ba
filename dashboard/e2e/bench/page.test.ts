// The page itself with a thousand lanes, while runs go on.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "../browser";
import { chromiumPath } from "../found";
import type { Controller } from "../server";
import { quantile, record } from "./figures";
import { load, seededController } from "./seeded";

const MINUTES = Number(process.env["MINUTES"] ?? 30);
const SECONDS = Number(process.env["LOAD_SECONDS"] ?? 120);
const EVENTS = 200;
/** How many seconds lie between two looks at the heap. */
const HEAP_EVERY = 300;
const WRITES = 60;
/** How many columns of a day lie ahead. */
const AHEAD = 3;

/** The heap of a page, in MB, after everything that can go has gone. */
async function heapMeter(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  return async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return usedSize / 1e6;
  };
}

/** The lengths of the frames from now on, until they are taken. */
async function watchFrames(page: Page): Promise<() => Promise<number[]>> {
  await page.evaluate(() => {
    const frames: number[] = [];
    let last = performance.now();
    const next = (now: number) => {
      frames.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
    (window as unknown as { frames: number[] }).frames = frames;
  });
  return () => page.evaluate(() => (window as unknown as { frames: number[] }).frames.splice(0));
}

async function openLive(browser: Browser, controller: Controller) {
  const watched = await open(browser, controller.url);
  await watched.page.goto(controller.url);
  await watched.page.locator(".row.lane").first().waitFor();
  await watched.page.locator('.live[data-phase="live"]').waitFor();
  return watched;
}

interface Target {
  lane: string;
  index: number;
  period: string;
}

/** Cells on screen in which nothing has happened, of pipelines that a sensor opens: one of each lane, then the next. */
async function emptyCells(page: Page, controller: Controller): Promise<Target[]> {
  const shown = await page.locator(".row.lane").evaluateAll((rows) =>
    rows.map((row) => ({
      lane: (row as HTMLElement).dataset["lane"] ?? "",
      count: row.querySelectorAll('.track > [role="gridcell"]').length,
      full: [...row.querySelectorAll<HTMLElement>("[data-index]")].map((cell) => Number(cell.dataset["index"])),
    })),
  );
  const overview = (await (await controller.api("GET", "overview?limit=5000")).json()) as { at: string; items: { id: string; schedules: string[] }[] };
  const streamed = new Set(overview.items.filter((lane) => lane.schedules.includes("stream")).map((lane) => lane.id));
  const hour = Math.floor(Date.parse(overview.at) / 3_600_000);
  const found: Target[] = [];
  for (let back = 0; back < 20; back += 1) {
    const period = new Date((hour - back) * 3_600_000).toISOString().slice(0, 13);
    for (const { lane, count, full } of shown) {
      const index = count - 1 - AHEAD - back;
      if (streamed.has(lane) && !full.includes(index)) found.push({ lane, index, period });
    }
  }
  return found;
}

describe.skipIf(chromiumPath() === null)("a thousand lanes", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    controller = await seededController(1000);
  }, 300_000);

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("paints its first lanes", async () => {
    const took: number[] = [];
    for (let count = 0; count < 7; count += 1) {
      const { page, context } = await open(browser, controller.url);
      await page.addInitScript(() => {
        new MutationObserver((_, observer) => {
          if (document.querySelector(".row.lane .cell") === null) return;
          observer.disconnect();
          requestAnimationFrame(() => {
            setTimeout(() => performance.mark("first-lanes"));
          });
        }).observe(document, { childList: true, subtree: true });
      });
      await page.goto(controller.url);
      await page.waitForFunction(() => performance.getEntriesByName("first-lanes").length > 0);
      took.push(await page.evaluate(() => performance.getEntriesByName("first-lanes")[0]?.startTime ?? NaN));
      await context.close();
    }
    record({ what: "first lanes painted", size: "1,000 pipelines", value: quantile(took, 0.5), unit: "ms", goal: 1000 });
  }, 120_000);

  it("shows a sensor write soon after it was answered", async () => {
    const { page, context, faults } = await openLive(browser, controller);
    await page.locator(".lanes .scroller").hover(); // rows stay where they are
    const targets = await emptyCells(page, controller);
    expect(targets.length).toBeGreaterThan(WRITES);
    await page.evaluate(() => {
      const seen = new Map<string, number>();
      (window as unknown as { seen: Map<string, number> }).seen = seen;
      new MutationObserver((records) => {
        const now = performance.timeOrigin + performance.now();
        for (const node of records.flatMap((record) => [...record.addedNodes])) {
          if (!(node instanceof HTMLElement) || node.dataset["index"] === undefined) continue;
          const cell = `${node.closest<HTMLElement>("[data-lane]")?.dataset["lane"] ?? ""} ${node.dataset["index"]}`;
          if (!seen.has(cell)) seen.set(cell, now);
        }
      }).observe(document.querySelector(".lanes .rows") ?? document, { childList: true, subtree: true });
    });
    const took: number[] = [];
    for (const { lane, index, period } of targets.slice(0, WRITES)) {
      await controller.sensor(lane, `upstream-complete#${period}`, { status: "ready" });
      const answered = performance.timeOrigin + performance.now();
      const seen = await page.waitForFunction((cell) => (window as unknown as { seen: Map<string, number> }).seen.get(cell), `${lane} ${index}`, { polling: 20 });
      took.push(Math.max(0, ((await seen.jsonValue()) as number) - answered));
    }
    record({ what: "sensor write answered to cell changed", size: "p50", value: quantile(took, 0.5), unit: "ms" });
    record({ what: "sensor write answered to cell changed", size: "p95", value: quantile(took, 0.95), unit: "ms", goal: 250 });
    expect(faults).toEqual([]);
    await context.close();
  }, 300_000);

  it("stays smooth and keeps its heap while events come", async () => {
    const { page, context, faults } = await openLive(browser, controller);
    const heap = await heapMeter(page);
    const idle = await watchFrames(page);
    await page.waitForTimeout(3000);
    record({ what: "frame, without events", size: "1,000 lanes, p95", value: quantile(await idle(), 0.95), unit: "ms" });
    // What is loaded once and kept (chunks, caches of zones and words) is there after some seconds of events.
    await load(controller, EVENTS, 10);
    const before = await heap();
    const frames = await watchFrames(page);
    const made = await load(controller, EVENTS, SECONDS);
    const lengths = await frames();
    record({ what: "events", size: `for ${Math.round(made.seconds)} s`, value: made.eventsPerSecond, unit: "/s" });
    record({ what: "frame at 200 events/s", size: "1,000 lanes, p50", value: quantile(lengths, 0.5), unit: "ms" });
    record({ what: "frame at 200 events/s", size: "1,000 lanes, p95", value: quantile(lengths, 0.95), unit: "ms", goal: 50 });
    record({ what: "frame at 200 events/s", size: "1,000 lanes, slowest", value: Math.max(...lengths), unit: "ms" });
    const grown = async (seconds: number) => {
      await page.waitForTimeout(2000);
      const goal = seconds >= MINUTES * 60 ? { goal: 20 } : {};
      record({ what: "heap grown at 200 events/s", size: `${Math.round(seconds / 6) / 10} minutes`, value: (await heap()) - before, unit: "MB", ...goal });
    };
    let seconds = SECONDS;
    await grown(seconds);
    while (seconds < MINUTES * 60) {
      const next = Math.min(HEAP_EVERY, MINUTES * 60 - seconds);
      await load(controller, EVENTS, next);
      await grown((seconds += next));
    }
    await page.locator('.live[data-phase="live"]').waitFor();
    expect(faults).toEqual([]);
    await context.close();
  }, (MINUTES + 10) * 60_000 + SECONDS * 1000);
});
