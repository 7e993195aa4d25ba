// The same page over AWS: `interlock console`, and an environment in a process of its own that plays what is deployed
// there (streams, timers, the state machine, the functions), so that the same journeys hold.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { expectAccessible, launch, open } from "./browser";
import { chromiumPath } from "./found";
import { rerunRefusedThenForced, sensorSetOnThePage, waitingTurnsDone } from "./journeys";
import { gated } from "./pipelines";
import { freePort, PYTHON, ROOT, until } from "./server";

const TODAY = new Date(performance.timeOrigin + performance.now()).toISOString().slice(0, 10);
const HEADERS = { "Content-Type": "application/json" };

/** A whole environment is loaded first: five seconds of processor time. */
const START = 55_000;
/** The function that the environment allows as a job. */
const JOB = { type: "lambda", config: { functionName: "gold-revenue" }, maxManualReruns: 3 };

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
    console_ = spawn("/bin/sh", ["-c", `exec "$0" -m tests.aws.world.console_process ${port} "${folder}" >>"${log}" 2>&1`, PYTHON], {
      cwd: ROOT,
      env: { ...Object.fromEntries(clean), XDG_STATE_HOME: folder, PYTHONPATH: ROOT },
    });
    await until(async () => {
      if (console_.exitCode !== null) throw new Error(`the console ended: ${readFileSync(log, "utf-8").slice(-2000)}`);
      return (await fetch(`${url}/readyz`)).ok;
    }, "the start of the console", START);
    const documents = [
      gated("gold-revenue", { job: JOB }),
      gated("silver-orders", { job: JOB }),
      gated("bronze", { job: { type: "external", config: {}, maxCodeRetries: 0 } }),
    ];
    for (const document of documents) {
      const { id } = document["pipeline"] as { id: string };
      await put(`pipelines/${id}`, document);
    }
  });

  afterAll(async () => {
    await browser.close();
    const ended = new Promise((done) => console_.once("exit", done));
    console_.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  async function put(path: string, body: unknown): Promise<void> {
    const answer = await fetch(`${url}/api/v1/${path}`, { method: "PUT", headers: HEADERS, body: JSON.stringify(body) });
    expect(answer.ok, await answer.text()).toBe(true);
  }

  const sensor = (pipeline: string, key: string, data: Record<string, unknown>) => put(`pipelines/${pipeline}/sensors/${key}`, data);

  it("turns a waiting run into a done one, on screen, by a sensor write; the events come live, by polling", async () => {
    await waitingTurnsDone(browser, url, "gold-revenue", sensor);
  });

  it("reruns: refused without a change, accepted by force, in the controller's own words", async () => {
    await rerunRefusedThenForced(browser, { url, pipeline: "gold-revenue", date: TODAY });
  });

  it("says why a run waits, sets its sensor, and shows what it leads to", async () => {
    await sensor("silver-orders", "upstream-complete", { status: "ready" });
    await sensorSetOnThePage(browser, url, "silver-orders");
  });

  it("takes the outcome of a job that somebody else runs", async () => {
    await sensor("bronze", "upstream-complete", { status: "ready" });
    await sensor("bronze", "row-count", { count: 5000 });
    const { page, faults, context } = await open(browser, url);
    await page.goto(`${url}/pipelines/bronze/runs/stream/${TODAY}`);
    await page.locator('.run-state [data-word="running"]').waitFor();
    await page.getByRole("button", { name: "Report…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Outcome").selectOption("fail");
    await dialog.getByLabel("Reason").fill("the disk is full");
    await dialog.getByRole("button", { name: "Report" }).click();
    await dialog.locator(".answer").getByText("recorded: fail of attempt 1").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.locator(`.run-state [data-word="failed"]`).waitFor();
    await page.getByText("the disk is full").first().waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("shows every other view over AWS, too", async () => {
    const { page, faults, context } = await open(browser, url);
    await page.goto(url);
    await page.locator('[data-lane="gold-revenue"]').waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    await expectAccessible(page);
    await page.goto(`${url}/graph?root=gold-revenue&as=list`);
    await page.getByRole("row", { name: /gold-revenue/ }).waitFor();
    await page.goto(`${url}/hazards?pipeline=gold-revenue`);
    await page.locator(".coverage li").first().waitFor();
    await page.goto(`${url}/sla`);
    await page.getByText("No run with an SLA has ended").waitFor();
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
