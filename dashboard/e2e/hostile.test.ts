import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open, type Watched } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const MARKUP = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>";
const SCRIPT = "javascript";
const TURNED = "user\u202Egpj.exe";
const ALL = `${MARKUP} ${SCRIPT}:alert(1) ${TURNED}`;
const NOW = new Date(performance.timeOrigin + performance.now());
const TODAY = NOW.toISOString().slice(0, 10);
const RUN = `/pipelines/bad/runs/stream/${TODAY}`;

/** Where each text is shown: the address, what must be read there, and what is pressed to see it. */
const PLACES: [string, string, string?][] = [
  ["/", "bad"],
  ["/?group=owner", "user\\u{202e}gpj.exe"],
  ["/?span=90d", "bad"],
  [RUN, "onerror"],
  [`${RUN}?tab=rules`, "row-count"],
  [`${RUN}?tab=log`, "onerror", ".output summary"],
  [`${RUN}?tab=attempts`, "manual"],
  [`${RUN}?tab=events`, "onerror", ".e-more"],
  [`${RUN}?tab=after`, "bad"],
  [`${RUN}?tab=raw`, "onerror"],
  ["/pipelines/bad", "onerror", "details summary"],
  [`/pipelines/bad/cell?at=${TODAY}T00:00:00.000Z&bucket=day`, "bad"],
  ["/events", "bad", ".e-more"],
  ["/events?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E", "onerror"],
  ["/graph?root=bad&as=list", `${SCRIPT}:`],
  [`/graph?root=bad&date=${TODAY}`, "bad"],
  ["/hazards?pipeline=bad", "uncovered"],
  ["/sla", "SLA"],
  ["/operate", "onerror", "details summary"],
  ["/alerts", "onerror"],
  ["/controller", "onerror"],
];

describe.skipIf(chromiumPath() === null)("hostile data", () => {
  let browser: Browser;
  let controller: Controller;
  let watched: Watched;

  beforeAll(async () => {
    browser = await launch();
    // It writes markup, a line that turns around, and 64 KiB without an end of line.
    const writes = `printf '%s\\n' "$0"; head -c 65536 /dev/zero | tr '\\0' x; exit 1`;
    const bad = gated("bad", {
      pipeline: { id: "bad", owner: `${SCRIPT}:alert(1) ${TURNED}`, description: ALL },
      validation: {
        rules: [
          { key: "row-count", check: "gte", field: "count", value: 1000 },
          { key: "note", check: "equals", field: MARKUP, value: ALL },
        ],
      },
      job: { type: "command", config: { command: ["sh", "-c", writes, ALL] }, maxCodeRetries: 0, maxManualReruns: 3 },
      sla: { deadline: "00:01", expectedDuration: "1m" },
    });
    const waits = gated("waits", { after: [{ pipeline: "bad" }] });
    controller = new Controller().pipelines([bad, waits]);
    writeFileSync(
      join(controller.folder, "interlock.toml"),
      `[[alerts]]\nchannel = "webhook"\nname = ${JSON.stringify(MARKUP)}\nurl = "http://127.0.0.1:9/"\nseverity = "info"\n`,
    );
    writeFileSync(join(controller.folder, "pipelines/no-config.json"), JSON.stringify({ pipeline: { id: "no-config" }, [ALL]: ALL, job: ALL }));
    await controller.start();
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, index]));
    await controller.sensor("bad", MARKUP, { value: MARKUP, link: `${SCRIPT}:alert(1)`, [ALL]: ALL });
    await controller.sensor("bad", `turned-${TURNED}`, { text: TURNED });
    await controller.sensor("bad", "many", many);
    await controller.sensor("bad", "long", { text: "x".repeat(64 * 1024 - 100) });
    await controller.sensor("bad", "upstream-complete", { status: "ready", note: MARKUP });
    await controller.sensor("bad", "note", { [MARKUP]: ALL });
    await controller.sensor("bad", "row-count", { count: 5000, note: TURNED });
    await stands("failed");
    await controller.api("POST", "pipelines/bad/reruns", { date: TODAY, reason: ALL, force: true });
    await until(async () => (await run()).attempts?.length === 2 && (await run()).word === "failed", "the second attempt");
    const made = await controller.api("POST", "pipelines/bad/jobs", { date: "2026-01-01", result: "fail", error: ALL });
    expect(made.status).toBeLessThan(500);
    watched = await open(browser, controller.url);
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  async function run(): Promise<{ word?: string; attempts?: unknown[] }> {
    return (await (await controller.api("GET", `pipelines/bad/runs/stream/${TODAY}`)).json()) as { word?: string; attempts?: unknown[] };
  }

  async function stands(word: string): Promise<void> {
    await until(async () => (await run()).word === word, `the run that is ${word}`);
  }

  it.each(PLACES)("is shown on %s, and never run", async (path, text, press) => {
    const { page, faults } = watched;
    await page.goto(controller.url + path);
    await page.locator("main").getByText(text).filter({ visible: true }).first().waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    if (press !== undefined) {
      for (const one of (await page.locator(`main ${press}`).all()).slice(0, 6)) await one.click();
      await page.locator("main").getByText(text).filter({ visible: true }).first().waitFor();
    }
    expect(await harm(page)).toEqual({ hacked: undefined, elements: 0, links: 0, turned: [] });
    expect(faults).toEqual([]);
  });

  it("is only text in dialogs, and in what they answer", async () => {
    const { page, faults } = watched;
    await page.goto(`${controller.url}/pipelines/bad`);
    await page.getByRole("button", { name: "Set sensor…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key").fill(MARKUP);
    await dialog.getByLabel("Fields").fill(JSON.stringify({ value: ALL }));
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.locator(".answer").getByText("onerror").waitFor();
    await expectHarmless(page);
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.goto(controller.url + RUN);
    await page.getByRole("button", { name: "Rerun…" }).click();
    await dialog.getByLabel("Reason").fill(ALL);
    await dialog.getByText("Would be").waitFor();
    await dialog.getByRole("button", { name: "Request the rerun" }).click();
    await dialog.locator(".answer").waitFor();
    await expectHarmless(page);
    expect(faults).toEqual([]);
  });

  it("of great length is cut, and 5,000 keys do not fill the page", async () => {
    const { page, faults } = watched;
    await page.goto(`${controller.url}/pipelines/bad`);
    await page.getByRole("cell", { name: "many", exact: true }).or(page.getByRole("rowheader", { name: "many" })).first().waitFor();
    const size = await page.evaluate(() => ({
      nodes: document.querySelectorAll("main *").length,
      longest: Math.max(...[...document.querySelectorAll("main td, main th")].map((cell) => cell.textContent.length)),
    }));
    expect(size.nodes).toBeLessThan(3000);
    expect(size.longest).toBeLessThan(5000);
    expect(faults).toEqual([]);
  });
});

/** What must not be: code that ran, elements made of text, links to elsewhere, a line turned around. */
function harm(page: Page): Promise<{ hacked: number | undefined; elements: number; links: number; turned: string[] }> {
  return page.evaluate(() => {
    const said = [...document.querySelectorAll("body *")].flatMap((element) => [
      ...["title", "aria-label", "placeholder"].map((name) => element.getAttribute(name) ?? ""),
      ...[...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent ?? ""),
    ]);
    return {
      hacked: (window as unknown as { hacked?: number }).hacked,
      elements: document.querySelectorAll("main img, main script, main iframe, [onerror], [onclick]").length,
      links: [...document.querySelectorAll("a")].filter((link) => !(link instanceof SVGElement) && !/^https?:$/.test(link.protocol)).length,
      turned: said.filter((text) => text.includes("\u202e")).map((text) => text.slice(0, 80)),
    };
  });
}

async function expectHarmless(page: Page): Promise<void> {
  const found = await harm(page);
  // A text that is being written is shown as it is written.
  expect({ ...found, turned: [] }).toEqual({ hacked: undefined, elements: 0, links: 0, turned: [] });
}
