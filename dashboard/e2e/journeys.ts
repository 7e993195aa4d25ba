// What people do on the page, the same over every store: the tests of the embedded controller and of AWS walk them.
import type { Browser } from "playwright-core";
import { expect } from "vitest";

import { open } from "./browser";
import { until } from "./server";

/** A run as its page's address names it. */
export interface Place {
  url: string;
  pipeline: string;
  date: string;
}

type Write = (pipeline: string, key: string, data: Record<string, unknown>) => Promise<void>;

/** Two sensor writes from elsewhere: the lane, its cell and the counter turn waiting, then done, and the tail tells of both. */
export async function waitingTurnsDone(browser: Browser, url: string, pipeline: string, write: Write): Promise<void> {
  const { page, faults, context } = await open(browser, url);
  await page.goto(url);
  const lane = page.locator(`[data-lane="${pipeline}"]`);
  await lane.waitFor();
  const tail = await open(browser, url, { context });
  await tail.page.goto(`${url}/events?pipeline=${pipeline}`);
  for (const tab of [page, tail.page]) await tab.locator('.live[data-phase="live"]').waitFor();
  await write(pipeline, "upstream-complete", { status: "ready" });
  await lane.getByText("waiting").waitFor();
  await lane.getByText("no sensor row-count").waitFor();
  expect(await lane.locator('.cell[data-s="w"]').count()).toBe(1);
  await write(pipeline, "row-count", { count: 5000 });
  await lane.locator('.cell[data-s="d"]').waitFor();
  await lane.locator('[data-word="done"]').waitFor();
  const done = page.getByRole("button", { name: /done/ });
  await until(async () => (await done.textContent())?.startsWith("1"), "the counter");
  for (const type of ["TRIGGER_STARTED", "VALIDATION_PASSED", "JOB_COMPLETED"]) {
    await tail.page.locator(".e-line", { hasText: type }).waitFor();
  }
  expect([...faults, ...tail.faults]).toEqual([]);
  await context.close();
}

/** A rerun of a run that is done: refused without a change, accepted by force, in the controller's own words. */
export async function rerunRefusedThenForced(browser: Browser, { url, pipeline, date }: Place): Promise<void> {
  const { page, faults, context } = await open(browser, url);
  await page.goto(`${url}/pipelines/${pipeline}/runs/stream/${date}`);
  await page.getByRole("button", { name: "Rerun…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("no sensor it reads has changed since").waitFor();
  await dialog.getByLabel("Reason").fill("just to see");
  await dialog.getByRole("button", { name: "Request the rerun" }).click();
  await dialog.getByText(/^rejected: attempt 1 succeeded/).waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Rerun…" }).click();
  await dialog.getByLabel(/force/).click();
  await dialog.getByText("manual rerun 1 of 3").waitFor();
  await dialog.getByLabel("Reason").fill("a correction");
  await dialog.getByRole("button", { name: "Request the rerun" }).click();
  await dialog.locator(".answer").getByText("accepted: manual rerun 1 of 3").waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByText("attempt 2 (manual)").first().waitFor();
  expect(faults).toEqual([]);
  await context.close();
}

/** A run that waits: why says for what; the sensor is written on the page itself, and the page shows what came of it. */
export async function sensorSetOnThePage(browser: Browser, url: string, pipeline: string): Promise<void> {
  const { page, faults, context } = await open(browser, url);
  await page.goto(`${url}/pipelines/${pipeline}`);
  await page.getByText("no sensor row-count").first().waitFor();
  await page.getByRole("button", { name: "Set sensor…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key").fill("row-count");
  await dialog.getByLabel("Fields").fill("count=7000");
  await dialog.getByRole("button", { name: "Write it" }).click();
  await dialog.getByText('"key": "row-count"').waitFor();
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.getByText("ran: it completed").first().waitFor();
  await page.getByRole("cell", { name: '{"count":7000}' }).waitFor();
  expect(faults).toEqual([]);
  await context.close();
}
