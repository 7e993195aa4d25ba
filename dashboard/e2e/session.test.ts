import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { expectAccessible, launch, open, signIn } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const REFUSED = /401/;

describe.skipIf(chromiumPath() === null)("signing in", () => {
  let browser: Browser;
  let controller: Controller;
  let reader: string;

  beforeAll(async () => {
    browser = await launch();
    controller = new Controller().pipelines([gated("gold-revenue")]);
    controller.token = controller.createToken("boss", "admin");
    reader = controller.createToken("ana", "read");
    await controller.start();
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  it("asks for a token, exchanges it for a cookie, and goes on at the same place", async () => {
    const { page, faults, forgive, context } = await open(browser, controller.url);
    forgive(REFUSED);
    await page.goto(`${controller.url}/?owner=analytics-team`);
    await page.getByLabel("Token").fill("ilk_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("this is not a token that works").waitFor();
    await expectAccessible(page);
    await page.getByLabel("Token").fill(reader);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator('[data-lane="gold-revenue"]').waitFor();
    expect(page.url()).toContain("owner=analytics-team");
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ name: `interlock_session_${controller.port}`, httpOnly: true, sameSite: "Strict" });
    const kept = await page.evaluate(() =>
      [document.cookie, ...[window.localStorage, window.sessionStorage].map((one) => JSON.stringify(one))].join(),
    );
    expect(kept).not.toContain("ilk_");
    expect(faults).toEqual([]);
    await context.close();
  });

  it("signs in by a code of the address, once, and leaves no trace of it", async () => {
    const address = controller.run("interlock", "open", "--print");
    const { page, faults, context } = await open(browser, controller.url);
    await page.goto(address);
    await page.locator('[data-lane="gold-revenue"]').waitFor();
    expect(page.url()).toBe(`${controller.url}/`);
    await page.getByRole("button", { name: "local" }).waitFor();
    expect(faults).toEqual([]);
    await context.close();
    const second = await open(browser, controller.url);
    second.forgive(REFUSED);
    await second.page.goto(address);
    await second.page.getByText("this code was used").waitFor();
    await second.context.close();
  });

  it("is over within a second when the token is revoked, and goes on at the same place", async () => {
    const token = controller.createToken("leaver", "read");
    const { page, faults, forgive, context } = await open(browser, controller.url);
    forgive(REFUSED);
    const place = `${controller.url}/pipelines/gold-revenue?days=30`;
    await page.goto(place);
    await signIn(page, token);
    await page.getByRole("heading", { name: "gold-revenue" }).waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    await new Promise((done) => setTimeout(done, 1100)); // a stream that has just been opened is not asked for again at once
    const began = performance.now();
    expect((await controller.api("DELETE", "tokens/leaver")).ok).toBe(true);
    await page.getByLabel("Token").waitFor();
    expect(performance.now() - began).toBeLessThan(2000); // one on a quiet machine
    await signIn(page, reader);
    await page.getByRole("heading", { name: "gold-revenue" }).waitFor();
    expect(page.url()).toBe(place);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("signs out", async () => {
    const { page, forgive, context } = await open(browser, controller.url);
    forgive(REFUSED);
    await page.goto(controller.url);
    await page.getByLabel("Token").fill(reader);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "ana" }).click();
    await page.getByText("May: read").waitFor();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    await until(async () => (await context.cookies()).length === 0, "the end of the cookie");
    await context.close();
  });
});
