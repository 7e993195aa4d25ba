// How long the controller takes to answer the overview, and how much it sends.
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import type { Controller } from "../server";
import { quantile, record } from "./figures";
import { seededController } from "./seeded";

const TIMES = 20;

describe.each([
  [1000, 150],
  [5000, 700],
])("overview of %i pipelines", (pipelines, goal) => {
  let controller: Controller;

  beforeAll(async () => {
    controller = await seededController(pipelines, 0.2);
  }, 600_000);

  afterAll(() => controller.end());

  it("is answered fast", async () => {
    const to = new Date(Math.ceil((performance.timeOrigin + performance.now()) / 3_600_000) * 3_600_000);
    const from = new Date(to.getTime() - 24 * 3_600_000);
    const url = `${controller.url}/api/v1/overview?limit=5000&from=${from.toISOString()}&to=${to.toISOString()}`;
    const took: number[] = [];
    let lanes = 0;
    for (let count = 0; count < TIMES; count += 1) {
      const began = performance.now();
      const answer = await fetch(url, { headers: { "Accept-Encoding": "gzip" } });
      const text = await answer.text();
      took.push(performance.now() - began);
      lanes = (JSON.parse(text) as { items: unknown[] }).items.length;
    }
    expect(lanes).toBe(pipelines);
    const size = `${pipelines.toLocaleString("en")} x 24`;
    record({ what: "overview", size, value: quantile(took, 0.5), unit: "ms", goal });
    record({ what: "overview, slowest of 20", size, value: Math.max(...took), unit: "ms" });
  }, 120_000);
});
