// `count=5 ready=true id="5"`, as the command line reads fields; or a JSON object.

/** The data, or what is wrong with the text. */
export function readFields(text: string): Record<string, unknown> | string {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) return readJson(trimmed);
  const data: Record<string, unknown> = {};
  const parts = trimmed.match(/[^\s="]+=(?:"[^"]*"|\S*)/g) ?? [];
  if (parts.join(" ") !== trimmed.split(/\s+(?=[^\s="]+=)/).join(" ") || parts.length === 0) {
    return "write fields as name=value, or a JSON object";
  }
  for (const part of parts) {
    const at = part.indexOf("=");
    data[part.slice(0, at)] = readValue(part.slice(at + 1));
  }
  return data;
}

function readJson(text: string): Record<string, unknown> | string {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    return error instanceof Error ? error.message : "this is not JSON";
  }
}

function readValue(text: string): unknown {
  if (/^".*"$/.test(text)) return text.slice(1, -1);
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  return /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}
