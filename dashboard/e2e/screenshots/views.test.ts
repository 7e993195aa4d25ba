// Pictures of every view for the documentation, kept in docs/images/dashboard as WebP: of a morning on which something
// is late, something failed and something is held (`bench.morning`), and of the demo, where all is well.
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
/** ONLY=run takes those that have that in their name. */
const ONLY = process.env["ONLY"] ?? "";
const QUALITY = 0.8;
const PLAYED = 240_000;
const TODAY = "2026-03-03";

/** Each view of the morning, and something that is on it when it is whole. */
const VIEWS: [string, string, string][] = [
  ["overview", "/", "[data-lane]"],
  ["overview-days", "/?span=30d&group=owner", "[data-lane]"],
  ["run", `/pipelines/gold-revenue/runs/cron/${TODAY}`, ".waterfall"],
  ["run-failed", `/pipelines/silver-orders/runs/cron/${TODAY}?tab=log`, ".waterfall"],
  ["pipeline", "/pipelines/gold-revenue", ".plot canvas"],
  ["events", "/events", ".e-line"],
  ["sla", "/sla", "main table"],
  ["graph", `/graph?root=silver-orders&depth=2&date=${TODAY}`, ".node"],
  ["hazards", "/hazards?pipeline=gold-revenue", ".coverage li"],
  ["operate", "/operate", "main table"],
  ["alerts", "/alerts", "main table"],
  ["controller", "/controller", "main figure"],
];

describe.skipIf(chromiumPath() === null)("the pictures", () => {
  let browser: Browser;
  let converter: Page;
  const played: ChildProcess[] = [];

  beforeAll(async () => {
    mkdirSync(KEPT, { recursive: true });
    if (PLAIN !== undefined) mkdirSync(PLAIN, { recursive: true });
    browser = await launch();
    converter = await browser.newPage();
  });

  afterAll(async () => {
    await browser.close();
    for (const one of played) {
      const ended = new Promise((done) => one.once("exit", done));
      one.kill("SIGINT");
      await ended;
    }
  });

  async function play(...arguments_: string[]): Promise<string> {
    const port = await freePort();
    played.push(spawn(PYTHON, ["-m", ...arguments_, "--port", String(port)], { cwd: ROOT, stdio: "ignore" }));
    const url = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${url}/readyz`)).ok, `the start of ${arguments_.join(" ")}`);
    return url;
  }

  async function overview(url: string): Promise<{ rate: number; items: { cells: string }[] }> {
    return (await (await fetch(`${url}/api/v1/overview`)).json()) as { rate: number; items: { cells: string }[] };
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

  /** Each view wide and narrow, light and dark. */
  async function take(url: string, views: readonly (readonly [string, string, string])[]): Promise<void> {
    const faults: string[] = [];
    for (const [width, height] of [[1440, 900], [390, 844]] as const) {
      for (const theme of ["light", "dark"] as const) {
        const seen = await open(browser, url, { width, height, theme });
        for (const [name, path, whole] of views.filter(([one]) => one.includes(ONLY))) {
          await seen.page.goto(url + path);
          await seen.page.locator(whole).first().waitFor();
          await seen.page.locator('.live[data-phase="live"]').waitFor();
          await save(`${name}-${width}-${theme}`, seen.page);
        }
        faults.push(...seen.faults);
        await seen.context.close();
      }
    }
    expect(faults).toEqual([]);
    expect(readFileSync(join(KEPT, `${views[0]?.[0] ?? ""}-1440-light.webp`)).length).toBeGreaterThan(5000);
  }

  it("of a morning with troubles are kept", async () => {
    const url = await play("bench.morning");
    // Its clock runs fast until everything has happened.
    await until(async () => (await overview(url)).rate === 1, "the end of the morning", PLAYED);
    await take(url, VIEWS);
  });

  it.skipIf(!"demo".includes(ONLY))("of the demo, where all is well, are kept", async () => {
    const url = await play("interlock", "demo");
    await until(async () => (await overview(url)).items.some((lane) => lane.cells.replaceAll("-", "").length >= 4), "some hours of the demo", PLAYED);
    await take(url, [["demo", "/", "[data-lane]"]]);
  });
});
