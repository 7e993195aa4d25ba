import { describe, expect, it } from "vitest";

import { cancelEffect } from "./cancelEffect";

describe("what cancelling would do", () => {
  it.each([
    ["running", true, /its job is stopped at its target/],
    ["waiting", true, /no job is started/],
    ["done", false, /It is done: there is nothing to cancel/],
    ["failed", false, /nothing to cancel/],
    [null, false, /has never run/],
  ] as const)("of a run that is %s", (word, possible, text) => {
    const effect = cancelEffect(word);
    expect(effect.possible).toBe(possible);
    expect(effect.text).toMatch(text);
  });
});
