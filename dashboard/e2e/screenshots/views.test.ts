// Pictures of every view for the documentation, of the demo while it plays. Kept in docs/images/dashboard as WebP.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "../browser";
import { chromiumPath } from "../found";
import { freePort, PYTHON, ROOT, until } from "../server";

const KEPT = process.env["SCREENSHOTS"] ?? join(ROOT, "docs/images/dashboard");
/** The same as PNG, for who looks at them one after the other. */
const PLAIN = process.env["SCREENSHOTS_PNG"];
const QUALITY = 0.8;
const PIPELINE = "crypto-silver";

interface Lane {
  id: string;
  standing: string;
  cells: string;
  current?: { schedule: string; date: string; word: string } | null;
}

describe.skipIf(chromiumPath() === null)("the views of the demo", () => {
  let browser: Browser;
  let demo: ChildProcess;
  let url: string;
  let converter: Page;

  beforeAll(async () => {
    mkdirSync(KEPT, { recursive: true });
    if (PLAIN !== undefined) mkdirSync(PLAIN, { recursive: true });
    browser = await launch();
    converter = await browser.newPage();
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    demo = spawn(PYTHON, ["-m", "interlock", "demo", "--port", String(port)], { stdio: "ignore" });
    await until(async () => (await fetch(`${url}/readyz`)).ok, "the start of the demo");
  });

  afterAll(async () => {
    await browser.close();
    const ended = new Promise((done) => demo.once("exit", done));
    demo.kill("SIGINT");
    await ended;
  });

  async function lanes(): Promise<Lane[]> {
    return ((await (await fetch(`${url}/api/v1/overview`)).json()) as { items: Lane[] }).items;
  }

  /** A moment with something to see: a history of some hours, something wrong, and something under way. */
  async function moment(): Promise<void> {
    const end = performance.now() + 300_000;
    for (;;) {
      const now = await lanes();
      const wrong = now.some((lane) => ["breached", "at-risk", "failed", "held"].includes(lane.standing));
      const busy = now.some((lane) => ["waiting", "running"].includes(lane.current?.word ?? ""));
      const long = now.some((lane) => lane.cells.replaceAll("-", "").length >= 4);
      if ((wrong && busy && long) || performance.now() > end) return;
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  async function save(name: string, page: Page): Promise<void> {
    const png = await page.screenshot();
    if (PLAIN !== undefined) writeFileSync(join(PLAIN, `${name}.png`), png);
    const webp = await converter.evaluate(
      async ([source, quality]) => {
        const image = new Image();
        image.src = source;
        await image.decode();
        const canvas = document.createElement("canvas");
        canvas.width = image.width;
        canvas.height = image.height;
        canvas.getContext("2d")?.drawImage(image, 0, 0);
        return canvas.toDataURL("image/webp", quality);
      },
      [`data:image/png;base64,${png.toString("base64")}`, QUALITY] as const,
    );
    writeFileSync(join(KEPT, `${name}.webp`), Buffer.from(webp.slice(webp.indexOf(",") + 1), "base64"));
  }

  it("are kept, wide and narrow, light and dark", async () => {
    await moment();
    const runs = (await (await fetch(`${url}/api/v1/pipelines/${PIPELINE}/runs?limit=5`)).json()) as { items: { schedule: string; date: string }[] };
    const run = runs.items[0];
    if (run === undefined) throw new Error(`${PIPELINE} has no run`);
    const views: [string, string, string][] = [
      ["overview", "/", "[data-lane]"],
      ["run", `/pipelines/${PIPELINE}/runs/${run.schedule}/${run.date}`, ".waterfall"],
      ["pipeline", `/pipelines/${PIPELINE}`, ".plot canvas"],
      ["events", "/events", ".e-line"],
      ["sla", "/sla", "main table"],
      ["graph", `/graph?root=${PIPELINE}&depth=2&date=${run.date}`, ".node"],
      ["hazards", `/hazards?pipeline=${PIPELINE}`, ".coverage li"],
      ["operate", "/operate", "main h1"],
      ["alerts", "/alerts", "main h1"],
      ["controller", "/controller", "main figure"],
    ];
    const faults: string[] = [];
    for (const [name, path, whole] of views) {
      for (const [width, height] of [[1440, 900], [390, 844]] as const) {
        for (const theme of ["light", "dark"] as const) {
          const seen = await open(browser, url, { width, height, theme });
          await seen.page.goto(url + path);
          await seen.page.locator(whole).first().waitFor();
          await seen.page.locator('.live[data-phase="live"]').waitFor();
          await save(`${name}-${width}-${theme}`, seen.page);
          faults.push(...seen.faults);
          await seen.context.close();
        }
      }
    }
    expect(faults).toEqual([]);
    expect(readFileSync(join(KEPT, "overview-1440-light.webp")).length).toBeGreaterThan(5000);
  });
});
