import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { launch, open } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, ROOT } from "./server";

const GONE = /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|Failed to load resource|Failed to fetch dynamically imported module|503/;

/** Another version of Interlock with another build of the page: no hashed name is what it was. */
function upgrade(folder: string, version: string): void {
  const init = join(folder, "interlock/__init__.py");
  writeFileSync(init, readFileSync(init, "utf-8").replace(/^__version__ = .*$/m, `__version__ = "${version}"`));
  const dist = join(folder, "interlock/web/dist");
  const names = readdirSync(join(dist, "assets"));
  const renamed = (text: string) =>
    names.reduce((done, name) => done.replaceAll(name, name.replace(/-([\w-]{8})\./, (_, hash: string) => `-${hash.slice(4)}${hash.slice(0, 4)}.`)), text);
  for (const name of names) {
    const path = join(dist, "assets", name);
    writeFileSync(path, renamed(readFileSync(path, "utf-8")));
    renameSync(path, join(dist, "assets", renamed(name)));
  }
  const index = join(dist, "index.html");
  writeFileSync(index, renamed(readFileSync(index, "utf-8")));
}

describe.skipIf(chromiumPath() === null)("an upgrade under an open tab", () => {
  let browser: Browser;
  let controller: Controller;
  let installed: string;

  beforeAll(async () => {
    browser = await launch();
    installed = mkdtempSync(join(tmpdir(), "interlock-installed-"));
    cpSync(join(ROOT, "src/interlock"), join(installed, "interlock"), { recursive: true });
    controller = new Controller().pipelines([gated("gold"), gated("silver")]);
    controller.packages = installed;
    await controller.start();
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
    rmSync(installed, { recursive: true, force: true });
  });

  it("goes on with the newer controller, and loads the new page once when a part of the old one is gone", async () => {
    const { page, faults, forgive, context } = await open(browser, controller.url);
    let loads = 0;
    page.on("load", () => {
      loads += 1;
    });
    await page.goto(controller.url);
    await page.locator('.live[data-phase="live"]').waitFor();
    await controller.sensor("gold", "upstream-complete", { status: "ready" });
    await page.locator('[data-lane="gold"] [data-word="waiting"]').waitFor();
    expect(faults).toEqual([]);
    forgive(GONE);

    await controller.stop();
    upgrade(installed, "99.0.0");
    await controller.start();
    await page.getByText(/The controller is now version 99\.0\.0/).waitFor();
    // The page of before goes on: nothing is lost, and nothing is loaded again by itself.
    await controller.sensor("gold", "row-count", { count: 5000 });
    await page.locator('[data-lane="gold"] [data-word="done"]').waitFor();
    expect(loads).toBe(1);

    await page.getByRole("link", { name: "Events" }).click();
    await page.locator(".e-line").first().waitFor();
    expect(new URL(page.url()).pathname).toBe("/events");
    expect(new URL(page.url()).search).toBe("");
    expect(loads).toBe(2);
    await page.getByRole("link", { name: "Hazards" }).click();
    await page.locator(".coverage").first().waitFor();
    expect(loads).toBe(2);
    expect(await page.getByText(/The controller is now version/).count()).toBe(0);

    // Something that stays missing does not make it load again and again.
    await page.route("**/assets/*worker*", (route) => route.fulfill({ status: 404 }));
    await page.goto(`${controller.url}/graph?root=gold`);
    await page.getByText("The picture cannot be drawn here").waitFor();
    expect(loads).toBe(4);
    await page.unroute("**/assets/*worker*");
    await page.route("**/assets/routes-*", (route) => route.fulfill({ status: 404 }));
    await page.goto(`${controller.url}/sla`);
    await page.getByRole("heading", { name: "The page failed" }).waitFor();
    expect(loads).toBe(5);
    expect(faults).toEqual([]);
    await context.close();
  });
});
