// How much the browser has to fetch.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

import { expect, it } from "vitest";

import { DIST, record } from "./figures";

const gzipped = (file: string): number => gzipSync(readFileSync(join(DIST, file)), { level: 9 }).length / 1000;

it("is small", () => {
  const html = readFileSync(join(DIST, "index.html"), "utf-8");
  const first = [...html.matchAll(/(?:src|href)="\/?(assets\/[^"]+)"/g)].map((match) => match[1] ?? "");
  expect(first.length).toBeGreaterThan(1);
  const all = readdirSync(join(DIST, "assets")).filter((name) => /\.(js|css)$/.test(name));
  const sum = (files: string[]) => files.reduce((total, file) => total + gzipped(file), 0);
  record({ what: "first load", size: "gzipped", value: sum(["index.html", ...first]), unit: "kB", goal: 230 });
  record({ what: "every chunk together", size: "gzipped", value: sum(all.map((name) => `assets/${name}`)), unit: "kB", goal: 350 });
});
