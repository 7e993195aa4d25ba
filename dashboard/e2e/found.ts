import { existsSync } from "node:fs";

const PLACES = [
  process.env["CHROMIUM"] ?? "",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/** The browser to test with, if there is one. */
export function chromiumPath(): string | null {
  return PLACES.find((place) => place !== "" && existsSync(place)) ?? null;
}

/** Before anything is run: say so where there is none. */
export default function setup(): void {
  if (chromiumPath() === null) {
    process.stderr.write("SKIPPED the browser tests: no Chromium was found; install it, or set CHROMIUM to its path\n");
  }
}
