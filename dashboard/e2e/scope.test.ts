import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { expectAccessible, launch, open, signIn } from "./browser";
import { chromiumPath } from "./found";
import { gated } from "./pipelines";
import { Controller, until } from "./server";

const TODAY = new Date(performance.timeOrigin + performance.now()).toISOString().slice(0, 10);
const UNKNOWN_YET = /401/;
const NOT_ALLOWED = /403/;

/** Every view, what it shows to somebody who may read, and what it says of the rest. */
const VIEWS: [string, string[]][] = [
  ["/", ["gold-revenue", "silver"]],
  [`/pipelines/silver/runs/stream/${TODAY}`, ["no sensor row-count"]],
  [`/pipelines/silver/runs/stream/${TODAY}?tab=log`, ["Reading what jobs wrote needs the scope operate."]],
  ["/pipelines/silver", ["no sensor row-count", "upstream-complete"]],
  ["/events", ["gold-revenue"]],
  ["/sla", ["SLA"]],
  ["/graph?root=silver&as=list", ["silver-report"]],
  ["/hazards?pipeline=silver", ["uncovered"]],
  ["/operate", ["Dead letters need the scope operate.", "Tokens need the scope admin."]],
  ["/alerts", ["Alerts need the scope operate."]],
  ["/controller", ["stream-router"]],
];

describe.skipIf(chromiumPath() === null)("a session of limited rights", () => {
  let browser: Browser;
  let controller: Controller;

  beforeAll(async () => {
    browser = await launch();
    const ingest = (id: string, changes: Record<string, unknown> = {}) =>
      gated(id, { pipeline: { id, owner: "ingest" }, ...changes });
    controller = new Controller().pipelines([
      gated("gold-revenue"),
      ingest("silver"),
      ingest("silver-report", { after: [{ pipeline: "silver" }, { pipeline: "gold-revenue" }] }),
    ]);
    controller.token = controller.createToken("boss", "admin");
    await controller.start();
    for (const name of ["gold-revenue", "silver"]) await controller.sensor(name, "upstream-complete", { status: "ready" });
    await until(async () => (await controller.api("GET", `pipelines/silver/runs/stream/${TODAY}`)).ok, "the run");
  });

  afterAll(async () => {
    await browser.close();
    await controller.end();
  });

  async function signedIn(token: string): Promise<{ context: BrowserContext; page: Page; faults: string[]; forgive: (pattern: RegExp) => void }> {
    const watched = await open(browser, controller.url);
    watched.forgive(UNKNOWN_YET);
    await watched.page.goto(controller.url);
    await signIn(watched.page, token);
    return watched;
  }

  it("that may only read shows every view, and names the scope of what it may not do", async () => {
    const { page, faults, context } = await signedIn(controller.createToken("reader", "read"));
    for (const [path, texts] of VIEWS) {
      await page.goto(controller.url + path);
      for (const text of texts) await page.locator("main").getByText(text).filter({ visible: true }).first().waitFor();
      await page.locator('.live[data-phase="live"]').waitFor();
      expect(await page.locator("main .problem").count(), path).toBe(0);
    }
    await page.goto(`${controller.url}/pipelines/silver/runs/stream/${TODAY}`);
    for (const [name, scope] of [["Rerun…", "operate"], ["Report…", "job:write"], ["Cancel…", "operate"]] as const) {
      const button = page.getByRole("button", { name });
      await button.waitFor();
      expect(await button.isDisabled()).toBe(true);
      expect(await button.textContent()).toContain(`needs the scope ${scope}`);
    }
    await page.goto(`${controller.url}/operate`);
    await page.getByRole("button", { name: "Run it now…" }).waitFor();
    const usable = await page.locator("main button:enabled").count();
    expect(usable).toBe(0);
    await expectAccessible(page);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("that is limited to an owner shows that owner's part of every view", async () => {
    const token = controller.run("interlock", "token", "create", "--name", "ingest", "--scope", "operate", "--scope", "sensor:write", "--owner", "ingest");
    const { page, faults, forgive, context } = await signedIn(token);
    await page.locator('[data-lane="silver"]').waitFor();
    await page.locator('.live[data-phase="live"]').waitFor();
    expect(await page.locator("[data-lane]").count()).toBe(2);
    await page.goto(`${controller.url}/events`);
    await page.locator(".e-line").first().waitFor();
    expect(await page.locator("main").getByText("gold-revenue").count()).toBe(0);
    await page.goto(`${controller.url}/hazards`);
    await page.locator("main .coverage", { hasText: "silver-report" }).first().waitFor();
    expect(await page.locator("main .coverage summary").count()).toBe(2);
    await page.goto(`${controller.url}/graph?root=silver-report&as=list`);
    await page.getByRole("row", { name: /gold-revenue/ }).getByText("beyond your token").first().waitFor();
    await page.goto(`${controller.url}/operate`);
    await page.getByText("Tokens need the scope admin").waitFor();
    await page.getByText("Dead letters need the scope operate, of a token that is not limited to some pipelines.").waitFor();
    expect(await page.getByRole("button", { name: "Run it now…" }).textContent()).toContain("needs a token that is not limited");
    await page.goto(`${controller.url}/alerts`);
    await page.getByText("of a token that is not limited").waitFor();
    await page.goto(`${controller.url}/controller`);
    await page.getByText("2 pipelines", { exact: true }).waitFor();
    await page.getByRole("button", { name: "ingest" }).click();
    await page.getByText("Limited to owner ingest").waitFor();
    expect(faults).toEqual([]);
    forgive(NOT_ALLOWED);
    await page.goto(`${controller.url}/pipelines/gold-revenue`);
    await page.getByRole("heading", { name: "Not allowed" }).waitFor();
    await page.getByText("is limited to other pipelines").waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("that is limited may still act where it may, and sees what comes of it", async () => {
    const token = controller.run("interlock", "token", "create", "--name", "silver-only", "--scope", "operate", "--scope", "sensor:write", "--pipeline", "silver");
    const { page, faults, context } = await signedIn(token);
    await page.goto(`${controller.url}/pipelines/silver`);
    await page.getByRole("button", { name: "Set sensor…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key").fill("row-count");
    await dialog.getByLabel("Fields").fill("count=7000");
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.getByText('"key": "row-count"').waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByText("ran: it completed").first().waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("that may not even read says so, and still writes its sensors", async () => {
    const { page, faults, forgive, context } = await signedIn(controller.createToken("feed", "sensor:write"));
    forgive(NOT_ALLOWED);
    await page.getByText("does not have the scope read").waitFor();
    await page.getByText("not live: needs the scope read").waitFor();
    await page.goto(`${controller.url}/operate`);
    await page.getByRole("combobox", { name: "Pipeline" }).fill("gold-revenue");
    await page.getByRole("button", { name: "Set sensor…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key").fill("note");
    await dialog.getByLabel("Fields").fill("text=hello");
    await dialog.getByRole("button", { name: "Write it" }).click();
    await dialog.getByText('"key": "note"').waitFor();
    expect(faults).toEqual([]);
    await context.close();
  });

  it("is made, rotated and ended in the view of tokens", async () => {
    const { page, faults, forgive, context } = await signedIn(controller.token);
    await page.goto(`${controller.url}/operate`);
    await page.getByRole("button", { name: "Make a token…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("For whom").fill("airflow");
    await dialog.getByLabel(/Limited to pipelines/).fill("silver");
    await dialog.getByLabel("Expires").selectOption("30d");
    await dialog.getByRole("button", { name: "Make it" }).click();
    const first = (await dialog.locator(".answer").getByText(/^ilk_/).textContent())?.split("\n")[0] ?? "";
    await dialog.getByRole("button", { name: "Close" }).click();
    const row = page.getByRole("row", { name: /airflow/ });
    await row.getByText("not yet").waitFor();
    const ends = new Date(performance.timeOrigin + performance.now() + 30 * 86_400_000).toISOString().slice(0, 10);
    expect(await row.locator("time").nth(1).getAttribute("datetime")).toContain(ends);

    // Somebody uses it in a browser of their own.
    const other = await signedIn(first);
    await other.page.locator('[data-lane="silver"]').waitFor();
    await other.page.locator('.live[data-phase="live"]').waitFor();
    await row.getByRole("button", { name: "Rotate…" }).click();
    await dialog.getByLabel(/The text before/).selectOption("0s");
    await dialog.getByLabel("Expires").selectOption("90d");
    await dialog.getByRole("button", { name: "Rotate it" }).click();
    const second = (await dialog.locator(".answer").getByText(/^ilk_/).textContent())?.split("\n")[0] ?? "";
    expect(second).not.toBe(first);
    await dialog.getByRole("button", { name: "Close" }).click();
    await other.page.getByLabel("Token").waitFor();
    await signIn(other.page, second);
    await other.page.locator('[data-lane="silver"]').waitFor();
    await row.getByText(/ago|now/).first().waitFor();

    await row.getByRole("button", { name: "Revoke…" }).click();
    await dialog.getByRole("button", { name: "Revoke it" }).click();
    await dialog.getByText("revoked: airflow").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await row.getByText("revoked").waitFor();
    await other.page.getByLabel("Token").waitFor();
    await expectAccessible(page);
    expect([...faults, ...other.faults]).toEqual([]);
    forgive(UNKNOWN_YET);
    await other.context.close();
    await context.close();
  });
});
