import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const MARKUP = "<img src=x onerror=window.hacked=1><script>window.hacked=2</script>";
const SCRIPT = "javascript";
const TURNED = "user\u202Egpj.exe";
const TODAY = new Date(performance.timeOrigin + performance.now()).toISOString().slice(0, 10);

describe.skipIf(chromiumPath() === null)("hostile data", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    const job = { type: "command", config: { command: ["sh", "-c", `printf '%s' '${MARKUP}'; exit 1`] }, maxCodeRetries: 0 };
    const bad = gated("bad", { job });
    bad["pipeline"] = { id: "bad", owner: `${SCRIPT}:alert(1) ${TURNED}`, description: MARKUP };
    controller = await new Controller().pipelines([bad]).start();
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, index]));
    await controller.sensor("bad", MARKUP, { value: MARKUP, link: `${SCRIPT}:alert(1)` });
    await controller.sensor("bad", `turned-${TURNED}`, { text: TURNED });
    await controller.sensor("bad", "many", many);
    await controller.sensor("bad", "long", { text: "x".repeat(60_000) });
    await controller.sensor("bad", "upstream-complete", { status: "ready", note: MARKUP });
    await controller.sensor("bad", "row-count", { count: 5000, note: TURNED });
    await until(async () => {
      const run = (await (await controller.api("GET", `pipelines/bad/runs/stream/${TODAY}`)).json()) as { word?: string };
      return run.word === "failed";
    }, "the run");
    await controller.api("POST", "pipelines/bad/reruns", { date: TODAY, reason: MARKUP, force: true });
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it.each([
    ["/", "bad"],
    [`/pipelines/bad/runs/stream/${TODAY}?tab=log`, "bad"],
    [`/pipelines/bad/runs/stream/${TODAY}?tab=raw`, "onerror"],
    [`/pipelines/bad/runs/stream/${TODAY}?tab=events`, "bad"],
    ["/pipelines/bad", "onerror"],
    ["/events?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.hacked%3D1%3E", "onerror"],
    ["/graph?root=bad&as=list", `${SCRIPT}:`],
    ["/hazards?pipeline=bad", "uncovered"],
    ["/operate", "Operate"],
  ])("is shown on %s, and never run", async (path, text) => {
    const { page, faults, context } = await open(browser, controller.url);
    await page.goto(controller.url + path);
    await page.locator("main").getByText(text).first().waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    const found = await page.evaluate(() => ({
      hacked: (window as unknown as { hacked?: number }).hacked,
      images: document.querySelectorAll("main img, main script").length,
      links: [...document.querySelectorAll("a")].filter((link) => !/^https?:$/.test(link.protocol)).length,
      turned: document.body.innerText.includes("\u202e"),
    }));
    expect(found).toEqual({ hacked: undefined, images: 0, links: 0, turned: false });
    expect(faults).toEqual([]);
    await context.close();
  });
});
