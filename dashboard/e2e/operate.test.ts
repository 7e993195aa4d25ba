import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const TODAY = new Date(performance.timeOrigin + performance.now()).toISOString().slice(0, 10);
const LINES = 4000;
// 4,000 lines of 60 characters: four pieces of 64 KiB. Then it goes on until it is stopped.
const WRITES = `i=1; while [ $i -le ${LINES} ]; do printf 'line %05d %048d\\n' $i 0; i=$((i+1)); done; exec sleep 600`;

function command(...parts: string[]): Record<string, unknown> {
  return { job: { type: "command", config: { command: parts }, maxCodeRetries: 0, maxManualReruns: 3 } };
}

describe.skipIf(chromiumPath() === null)("acting on runs", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    controller = await new Controller()
      .pipelines([gated("endless", command("sh", "-c", WRITES)), gated("broken", command("false")), gated("patient"), gated("quick")])
      .start();
    for (const name of ["endless", "broken", "patient", "quick"]) await controller.sensor(name, "upstream-complete", { status: "ready" });
    for (const name of ["endless", "broken", "quick"]) await controller.sensor(name, "row-count", { count: 5000 });
    await until(async () => (await word("endless")) === "running" && (await word("broken")) === "failed" && (await word("quick")) === "done", "the runs");
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  async function word(pipeline: string): Promise<string | undefined> {
    const answer = await controller.api("GET", `pipelines/${pipeline}/runs/stream/${TODAY}`);
    return ((await answer.json()) as { word?: string }).word;
  }

  it("reads what a job writes, piece by piece, then stops the job", async () => {
    const { page, faults, context } = await open(browser, controller.url);
    const pieces: number[] = [];
    page.on("request", (request) => {
      const offset = /\/output\?offset=(\d+)$/.exec(request.url())?.[1];
      if (offset !== undefined) pieces.push(Number(offset));
    });
    await page.goto(`${controller.url}/pipelines/endless/runs/stream/${TODAY}?tab=log`);
    await page.getByText("Attempt 1, running").click();
    await page.getByText(`line ${String(LINES).padStart(5, "0")}`).waitFor();
    const text = await page.locator(".output pre").textContent();
    const numbers = [...(text ?? "").matchAll(/^line (\d{5}) /gm)].map((match) => Number(match[1]));
    expect(numbers).toEqual(Array.from({ length: LINES }, (_, index) => index + 1));
    expect(new Set(pieces).size).toBeGreaterThanOrEqual(4);

    await page.getByRole("button", { name: "Cancel…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("It is running: its job is stopped at its target").waitFor();
    await dialog.getByLabel("Reason").fill("it never ends");
    await dialog.getByRole("button", { name: "Cancel the run" }).click();
    await dialog.locator(".answer").getByText("stopping").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await until(async () => (await word("endless")) === "failed", "the end of the job");
    await page.locator('.run-state [data-word="failed"]').waitFor();
    await page.getByText("it never ends").first().waitFor();
    await page.getByText("Attempt 1", { exact: true }).waitFor();
    await page.getByText("Nothing more will come.").waitFor();
    expect(await page.getByRole("button", { name: "Cancel…" }).count()).toBe(0);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("says what a cancellation does to a run as it stands", async () => {
    const { page, faults, forgive, context } = await open(browser, controller.url);
    forgive(/404/); // of a period that never ran
    await page.goto(`${controller.url}/operate`);
    const target = async (pipeline: string, date: string) => {
      await page.getByRole("combobox", { name: "Pipeline" }).fill(pipeline);
      await page.getByLabel("Schedule").fill("stream");
      await page.getByLabel("Period").fill(date);
      await page.getByRole("button", { name: "Cancel…" }).click();
    };
    const dialog = page.getByRole("dialog");
    await target("quick", TODAY);
    await dialog.getByText("It is done: there is nothing to cancel.").waitFor();
    expect(await dialog.getByRole("button", { name: "Cancel the run" }).isDisabled()).toBe(true);
    await page.keyboard.press("Escape");
    await target("quick", "2026-01-01");
    await dialog.getByText("has never run").waitFor();
    await page.keyboard.press("Escape");
    await target("patient", TODAY);
    await dialog.getByText("It is waiting: the attempt ends, and no job is started.").waitFor();
    await dialog.getByLabel("Reason").fill("not today");
    await dialog.getByRole("button", { name: "Cancel the run" }).click();
    await dialog.locator(".answer").getByText("cancelled").waitFor();
    // The text follows the run: it is over.
    await dialog.getByText("there is nothing to cancel").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("keeps the answer on screen when the first attempt of a period comes of it", async () => {
    const { page, faults, context } = await open(browser, controller.url);
    await page.goto(`${controller.url}/pipelines/quick/runs/stream/2026-01-02`);
    await page.getByRole("button", { name: "Rerun…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Would be").waitFor();
    await dialog.getByLabel("Reason").fill("it was forgotten");
    await dialog.getByRole("button", { name: "Request the rerun" }).click();
    await page.locator(".waterfall").waitFor();
    await dialog.locator(".answer").getByText(/^accepted/).waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("goes from the overview to a rerun by keyboard alone, the focus always in sight", async () => {
    const { page, faults, context } = await open(browser, controller.url);
    await page.goto(controller.url);
    await page.locator('[data-lane="broken"]').waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    await lane(page, "broken");
    await page.keyboard.press("ArrowRight");
    await until(async () => (await focused(page)).name.includes("failed"), "the focus on the failed cell");
    await expectInSight(page);
    await page.keyboard.press("w");
    await page.getByRole("heading", { name: "broken" }).waitFor();
    await tabTo(page, "Rerun…");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Would be").waitFor();
    expect(await page.evaluate(() => document.activeElement?.closest("dialog") !== null)).toBe(true);
    await tabTo(page, "force");
    await page.keyboard.press("Space");
    await dialog.getByText("manual rerun 1 of 3").waitFor();
    await tabTo(page, "Reason");
    await page.keyboard.type("by hand");
    await tabTo(page, "Request the rerun");
    await page.keyboard.press("Enter");
    await dialog.locator(".answer").getByText("accepted: manual rerun 1 of 3").waitFor();
    await tabTo(page, "Close");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await until(async () => (await focused(page)).name.includes("Rerun…"), "the focus back on the button");
    await page.getByText("attempt 2 (manual)").first().waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });
});

interface Focused {
  name: string;
  seen: boolean;
  what: string;
}

/** What has the focus, how it is called, and whether that can be seen. */
function focused(page: Page): Promise<Focused> {
  return page.evaluate(() => {
    const element = document.activeElement;
    if (element === null) return { name: "", seen: false, what: "nothing" };
    const marked = (one: Element) => {
      const style = getComputedStyle(one);
      return style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 1;
    };
    const box = element.getBoundingClientRect();
    const label = element.closest("label")?.textContent ?? "";
    return {
      name: `${element.getAttribute("aria-label") ?? ""} ${element.textContent} ${label}`,
      seen: (marked(element) || (element.parentElement !== null && marked(element.parentElement))) && box.width > 0 && box.top < window.innerHeight,
      what: `${element.tagName} ${element.getAttribute("class") ?? ""} ${element.textContent.slice(0, 80)}`,
    };
  });
}

async function expectInSight(page: Page): Promise<void> {
  const { seen, what } = await focused(page);
  expect(seen, `the focus can be seen on ${what}`).toBe(true);
}

/** `j` until a lane is reached. */
async function lane(page: Page, id: string): Promise<void> {
  for (let count = 0; count < 10; count += 1) {
    await page.keyboard.press("j");
    await until(() => page.evaluate(() => document.activeElement?.classList.contains("name") ?? false), "the focus on a lane");
    await expectInSight(page);
    if ((await focused(page)).name.includes(id)) return;
  }
  throw new Error(`j does not reach ${id}`);
}

/** Tab until something of that name has the focus; wherever it is on the way, it can be seen. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let count = 0; count < 40; count += 1) {
    await page.keyboard.press("Tab");
    const now = await focused(page);
    if (now.what.startsWith("BODY")) continue;
    expect(now.seen, `the focus can be seen on ${now.what}`).toBe(true);
    if (now.name.includes(name)) return;
  }
  throw new Error(`Tab does not reach ${name}`);
}
