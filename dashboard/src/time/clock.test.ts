import { describe, expect, it } from "vitest";

import { Clock, parseTime } from "./clock";

const TEN = Date.parse("2026-03-03T10:00:00Z");

describe("the controller's clock", () => {
  it("is told by answers, and never asks the browser's clock", () => {
    let monotonic = 5000;
    const clock = new Clock(() => monotonic);
    expect(clock.known).toBe(false);
    // The browser may be two hours off: only what the controller says counts.
    clock.sync(parseTime("2026-03-03T10:00:00Z;rate=1"));
    expect(clock.now()).toBe(TEN);
    monotonic += 1500;
    expect(clock.now()).toBe(TEN + 1500);
  });

  it("runs as fast as the controller's, and follows a change of speed", () => {
    let monotonic = 0;
    const clock = new Clock(() => monotonic);
    clock.sync({ at: TEN, rate: 60 });
    monotonic = 1000;
    expect(clock.now()).toBe(TEN + 60_000);
    clock.sync({ at: TEN + 60_000, rate: 20 });
    monotonic = 2000;
    expect(clock.now()).toBe(TEN + 80_000);
    expect(clock.rate).toBe(20);
  });

  it("moves on with events, but never back with those of the past", () => {
    const clock = new Clock(() => 0);
    clock.sync({ at: TEN, rate: 60 });
    clock.atLeast(TEN - 3_600_000);
    expect(clock.now()).toBe(TEN);
    clock.atLeast(TEN + 5000);
    expect(clock.now()).toBe(TEN + 5000);
    clock.atLeast(Number.NaN);
    expect(clock.now()).toBe(TEN + 5000);
  });

  it.each(["", "10:00", "2026-03-03T10:00:00Z", "2026-03-03T10:00:00Z;rate=0", "x;rate=1", null])("takes no nonsense: %s", (text) => {
    expect(parseTime(text)).toBeNull();
  });
});
