// Text that others wrote, made safe to look at: what would not be seen, or would turn the line around, is written out.

// Control characters (but for line ends and tabs), marks of direction, characters without a width, and tags.
const HIDDEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}\ud800-\udfff]/gu;

function name(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}}`;
}

/** Nothing hidden: every such character as its number. */
export function visible(text: string): string {
  return text.replace(HIDDEN, name);
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return visible(text).replace(/[\r\n\t\u2028\u2029]+/g, " ");
}

export const LONG = 2048;

/** The beginning of a long text, and whether there is more. Never splits a character. */
export function cut(text: string, length = LONG): { shown: string; more: boolean } {
  if (text.length <= length) return { shown: text, more: false };
  const end = /[\ud800-\udbff]/.test(text.charAt(length - 1)) ? length - 1 : length;
  return { shown: text.slice(0, end), more: true };
}

/** A link that may be followed; nothing for every other kind of address. */
export function safeLink(text: string): string | null {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
