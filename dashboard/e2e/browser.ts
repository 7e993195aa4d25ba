// A Chromium that notices everything that must not happen: errors, reports of the policy, requests to elsewhere.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { expect } from "vitest";

import { chromiumPath } from "./found";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launch(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === null) throw new Error("there is no Chromium");
  return chromium.launch({ executablePath, args: FLAGS });
}

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** What must not have happened, so far. */
  faults: string[];
  /** Leave out what a test brings about on purpose. */
  forgive: (pattern: RegExp) => void;
}

export interface Options {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
  context?: BrowserContext;
}

/** A page that collects its faults. */
export async function open(browser: Browser, origin: string, options: Options = {}): Promise<Watched> {
  const context =
    options.context ??
    (await browser.newContext({
      viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
      colorScheme: options.theme ?? "light",
      timezoneId: "Europe/Berlin",
      locale: "en-GB",
    }));
  const page = await context.newPage();
  const faults: string[] = [];
  const forgiven: RegExp[] = [];
  const add = (fault: string) => {
    if (!forgiven.some((pattern) => pattern.test(fault))) faults.push(fault);
  };
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") add(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => add(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) add(`foreign: ${url}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return { page, context, faults, forgive: (pattern) => forgiven.push(pattern) };
}

/** Exchange a token for a session, at the page that asks for it. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Token").waitFor({ state: "detached" });
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");

/** No violation of accessibility, as far as a machine can tell. */
export async function expectAccessible(page: Page): Promise<void> {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const violations = await page.evaluate(async () => {
    type Found = { violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] };
    const { axe } = window as unknown as { axe: { run: (options: { resultTypes: string[] }) => Promise<Found> } };
    // All rules, but what passes is not described.
    const found = await axe.run({ resultTypes: ["violations"] });
    return found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary ?? ""}`).join("\n  ")}`);
  });
  expect(violations).toEqual([]);
}
