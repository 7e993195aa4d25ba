import { describe, expect, it } from "vitest";

import { beside, nearest } from "./cellMoves";

describe("moving between cells", () => {
  it("skips columns that have nothing to open", () => {
    expect(beside("d---w-", 0, 1)).toBe(4);
    expect(beside("d---w-", 4, -1)).toBe(0);
    expect(beside("d---w-", 4, 1)).toBeNull();
    expect(beside("d---w-", -1, 1)).toBe(0);
  });

  it("finds the nearest in another lane", () => {
    expect(nearest("d---w-", 3)).toBe(4);
    expect(nearest("d---w-", 1)).toBe(0);
    expect(nearest("d---w-", 5)).toBe(4);
    expect(nearest("------", 3)).toBeNull();
  });
});
