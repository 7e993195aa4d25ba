import { expect, it } from "vitest";

import { pause } from "./backoff";

it("waits 1 to 30 seconds, doubling, with jitter", () => {
  expect([1, 2, 3, 4, 5, 6, 20].map((tries) => pause(tries, 1))).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  expect(pause(6, 0)).toBe(15_000);
  expect(pause(1, 0)).toBe(1000);
});
