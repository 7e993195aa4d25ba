import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Announcer } from "./announcer";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("says at most one thing in five seconds, the latest", () => {
  const said: string[] = [];
  const announcer = new Announcer(() => performance.now());
  announcer.connect((text) => said.push(text));
  announcer.announce("one");
  vi.advanceTimersByTime(0);
  announcer.announce("two");
  announcer.announce("three");
  vi.advanceTimersByTime(4999);
  expect(said).toEqual(["one"]);
  vi.advanceTimersByTime(1);
  expect(said).toEqual(["one", "three"]);
});
