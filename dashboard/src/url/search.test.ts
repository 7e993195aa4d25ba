import { beforeEach, describe, expect, it } from "vitest";

import { notices } from "../shell/notices";
import { overviewSearch, parseSearch, rootSearch, stringifySearch } from "./search";

describe("the address", () => {
  beforeEach(() => {
    notices.snapshot().forEach((one) => notices.dismiss(one));
  });

  it("keeps what it knows and drops the rest with a notice", () => {
    const search = overviewSearch({ span: "9y", state: "failed,held", owner: "team-a", q: "x".repeat(300), group: "owner" });
    expect(search).toEqual({ state: ["failed", "held"], owner: "team-a", group: "owner" });
    expect(notices.snapshot()).toHaveLength(2);
    expect(notices.snapshot()[0]).toContain("“span”");
  });

  it("keeps the good part of a list", () => {
    expect(overviewSearch({ state: "failed,nonsense" })).toEqual({ state: ["failed"] });
    expect(notices.snapshot()[0]).toContain("“state”");
  });

  it("survives what is no text at all", () => {
    expect(overviewSearch({ q: { a: 1 }, owner: ["x"], sel: 7 })).toEqual({ sel: "7" });
    expect(rootSearch({ zone: "mars" })).toEqual({});
    expect(rootSearch({ zone: "utc" })).toEqual({ zone: "utc" });
  });

  it("is the same after a round trip", () => {
    const search = { span: "7d", state: ["failed", "at-risk"], q: "a&b=c #d", at: "2026-03-03T10:00:00.000Z" };
    expect(overviewSearch(parseSearch(stringifySearch(search)))).toEqual({ span: "7d", state: ["failed", "at-risk"], q: "a&b=c #d" });
    expect(stringifySearch({ a: undefined, b: "" })).toBe("");
  });
});
