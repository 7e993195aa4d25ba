import type { Schemas } from "../api/client";
import { visibleLine } from "../text/visible";

const MARKS: Record<string, string> = { pass: "✓ ", fail: "✗ ", none: "" };

/** The explanation as plain text, to be pasted into a chat. */
export function whyText(why: Schemas["Explanation"]): string {
  const lines = [why.verdict];
  for (const section of why.sections) {
    lines.push("", section.title, ...section.lines.map((line) => `  ${MARKS[line.mark] ?? ""}${line.text}`));
  }
  lines.push("", why.advice);
  return lines.map(visibleLine).join("\n");
}
