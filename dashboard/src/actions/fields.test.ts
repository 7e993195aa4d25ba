import { describe, expect, it } from "vitest";

import { readFields } from "./fields";

describe("the fields of a sensor", () => {
  it.each([
    ["count=5 ready=true", { count: 5, ready: true }],
    ['id="5" name=a-b', { id: "5", name: "a-b" }],
    ['note="two words" n=-1.5e3 x=null', { note: "two words", n: -1500, x: null }],
    ['{"a": {"b": [1]}}', { a: { b: [1] } }],
    ["version=1.2.3", { version: "1.2.3" }],
    ["empty=", { empty: "" }],
  ])("%s", (text, data) => {
    expect(readFields(text)).toEqual(data);
  });

  it.each(["", "just words", "a=1 and then", '{"a": ', "=5"])("refuses %s", (text) => {
    expect(typeof readFields(text)).toBe("string");
  });
});
