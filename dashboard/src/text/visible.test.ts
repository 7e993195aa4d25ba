import { describe, expect, it } from "vitest";

import { cut, safeLink, visible, visibleLine } from "./visible";

describe("text that others wrote", () => {
  it("hides nothing: controls and marks of direction are written out", () => {
    expect(visible("a\u202Egpj.exe")).toBe("a\\u{202e}gpj.exe");
    expect(visible("\u0000\u001b[31m\u200b\ufeff")).toBe("\\u{0000}\\u{001b}[31m\\u{200b}\\u{feff}");
    expect(visible("\ud800")).toBe("\\u{d800}");
    expect(visible("line\nwith\ttab, é, 🎉")).toBe("line\nwith\ttab, é, 🎉");
    expect(visibleLine("two\r\nlines\u2028more")).toBe("two lines more");
  });

  it("is cut where it is long, never within a character", () => {
    expect(cut("short")).toEqual({ shown: "short", more: false });
    const { shown, more } = cut("x".repeat(2047) + "🎉" + "y".repeat(10));
    expect(more).toBe(true);
    expect(shown).toBe("x".repeat(2047));
  });

  it("is a link only where that is harmless", () => {
    const script = "javascript";
    expect(safeLink("https://example.com/a")).toBe("https://example.com/a");
    for (const text of [`${script}:alert(1)`, `${script.toUpperCase()}:x`, "data:text/html,x", "file:///etc/passwd", "//x", "no link"]) {
      expect(safeLink(text)).toBeNull();
    }
  });
});
