// The same page over AWS: `interlock console` over an environment in a process of its own, without an engine.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { expectAccessible, launch, open } from "./browser";
import { chromiumPath } from "./found";
import { freePort, PYTHON, ROOT, until } from "./server";

const TODAY = new Date(performance.timeOrigin + performance.now()).toISOString().slice(0, 10);
const HEADERS = { "Content-Type": "application/json" };

function external(id: string): Record<string, unknown> {
  return {
    pipeline: { id, owner: "analytics-team" },
    schedule: { trigger: { key: "upstream-complete", check: "equals", field: "status", value: "ready" } },
    validation: { rules: [{ key: "row-count", check: "gte", field: "count", value: 1000 }] },
    job: { type: "external", config: {}, maxManualReruns: 3 },
  };
}

describe.skipIf(chromiumPath() === null)("the page over AWS", () => {
  let browser: Browser;
  let console_: ChildProcess;
  let folder: string;
  let url: string;

  beforeAll(async () => {
    browser = await launch();
    folder = mkdtempSync(join(tmpdir(), "interlock-console-"));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const log = join(folder, "log.txt");
    writeFileSync(log, "");
    const clean = Object.entries(process.env).filter(([name]) => !/^(INTERLOCK|AWS)_/.test(name));
    console_ = spawn("/bin/sh", ["-c", `exec "$0" -m tests.aws.cli.console_process ${port} "${folder}" >>"${log}" 2>&1`, PYTHON], {
      cwd: ROOT,
      env: { ...Object.fromEntries(clean), XDG_STATE_HOME: folder, PYTHONPATH: ROOT },
    });
    await until(async () => {
      if (console_.exitCode !== null) throw new Error(`the console ended: ${readFileSync(log, "utf-8").slice(-2000)}`);
      return (await fetch(`${url}/readyz`)).ok;
    }, "the start of the console");
    for (const id of ["gold-revenue", "silver-orders"]) {
      const answer = await fetch(`${url}/api/v1/pipelines/${id}`, { method: "PUT", headers: HEADERS, body: JSON.stringify(external(id)) });
      expect(answer.status, await answer.text()).toBe(201);
    }
  });

  afterAll(async () => {
    await browser.close();
    const ended = new Promise((done) => console_.once("exit", done));
    console_.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  it("turns a sensor write on the page into a run that waits, live on the overview", async () => {
    const { page, faults, context } = await open(browser, url);
    await page.goto(url);
    const lane = page.locator('[data-lane="gold-revenue"]');
    await lane.waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    const writer = await open(browser, url);
    await writer.page.goto(`${url}/pipelines/gold-revenue`);
    await writer.page.locator('.live[data-phase="live"]').waitFor();
    await writer.page.getByRole("button", { name: "Set sensor…" }).click();
    const dialog = writer.page.getByRole("dialog");
    await dialog.getByLabel("Key").fill("upstream-complete");
    await dialog.getByLabel("Fields").fill("status=ready");
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.getByText('"key": "upstream-complete"').waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await lane.locator('[data-word="waiting"]').waitFor();
    await writer.page.getByRole("link", { name: TODAY }).first().waitFor();
    await expectAccessible(page);
    expect([...faults, ...writer.faults]).toEqual([]);
    await writer.context.close();
    await context.close();
  });

  it("shows the run, the pipeline and the events, and asks for a rerun", async () => {
    const { page, faults, context } = await open(browser, url);
    await page.goto(`${url}/pipelines/gold-revenue/runs/stream/${TODAY}`);
    await page.getByText("no sensor row-count").first().waitFor();
    await page.locator(".waterfall").waitFor();
    await page.goto(`${url}/events`);
    await page.locator(".e-line", { hasText: "TRIGGER_STARTED" }).first().waitFor();
    await page.goto(`${url}/graph?root=gold-revenue&as=list`);
    await page.getByRole("row", { name: /gold-revenue/ }).waitFor();
    await page.goto(`${url}/hazards?pipeline=gold-revenue`);
    await page.locator(".coverage li").first().waitFor();
    await page.goto(`${url}/pipelines/silver-orders/runs/stream/${TODAY}`);
    await page.getByRole("button", { name: "Rerun…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Would be").waitFor();
    await dialog.getByLabel(/force/).click();
    await dialog.getByText("manual rerun 1 of 3").or(dialog.getByText("accepted")).first().waitFor();
    await dialog.getByLabel("Reason").fill("a correction");
    await dialog.getByRole("button", { name: "Request the rerun" }).click();
    await dialog.locator(".answer").getByText(/^(accepted|pending)/).waitFor();
    await page.locator(".waterfall").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("says where in AWS to look for what needs the engine", async () => {
    const { page, faults, forgive, context } = await open(browser, url);
    await page.goto(`${url}/alerts`);
    await page.locator("main").getByText("alert-dispatcher").first().waitFor();
    await page.goto(`${url}/controller`);
    await page.getByText("stream-router").first().waitFor();
    await page.goto(`${url}/operate`);
    await page.getByText("None: nothing was given up.").waitFor();
    expect(faults).toEqual([]);
    forgive(/422/);
    await page.goto(`${url}/alerts`);
    await page.getByRole("button", { name: "Test the channels…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Send a test alert" }).click();
    await page.getByRole("dialog").getByText("/aws/lambda/test-interlock-alert-dispatcher").waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });
});
