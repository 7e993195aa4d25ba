// What was measured, with its goal. Figures are collected in one file: `bench.ui_report` prints and draws them.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { PYTHON } from "../server";

const ROOT = resolve(import.meta.dirname, "../../..");
export const RESULTS = join(ROOT, "bench-ui-results.json");
export const DIST = join(ROOT, "src/interlock/web/dist");

export interface Figure {
  what: string;
  size: string;
  value: number;
  unit: string;
  goal?: number;
  more_is_better?: boolean;
}

/** Remember a figure. Every test file appends to the same list: they run one after the other. */
export function record(figure: Figure): void {
  const before = JSON.parse(readFileSync(RESULTS, "utf-8")) as { figures: Figure[] };
  const value = Math.round(figure.value * 1000) / 1000;
  const kept = before.figures.filter((one) => one.what !== figure.what || one.size !== figure.size);
  writeFileSync(RESULTS, `${JSON.stringify({ ...before, figures: [...kept, { ...figure, value }] }, null, 2)}\n`);
  const goal = figure.goal === undefined ? "" : ` (goal ${figure.more_is_better === true ? "at least" : "at most"} ${figure.goal})`;
  process.stderr.write(`${figure.what}, ${figure.size}: ${value} ${figure.unit}${goal}\n`);
}

/** The value below which this part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  const found = sorted[Math.min(Math.ceil(sorted.length * part), sorted.length) - 1];
  if (found === undefined) throw new Error("nothing was measured");
  return found;
}

/** Before a run: a new file, with the machine as it is now. What is measured alone (ONLY=) keeps the others' figures. */
export default function setup(): void {
  if ((process.env["ONLY"] ?? "") !== "" && existsSync(RESULTS)) return;
  const begun = spawnSync(PYTHON, ["-m", "bench.ui_report", "begin"], { cwd: ROOT, encoding: "utf-8" });
  if (begun.status !== 0) throw new Error(begun.stderr);
}
