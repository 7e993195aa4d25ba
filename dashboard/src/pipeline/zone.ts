// What a pipeline's document says of its schedules, for people.

interface Schedule {
  id?: unknown;
  cron?: unknown;
  timezone?: unknown;
  trigger?: { key?: unknown };
  include?: unknown;
}

function schedules(document: Record<string, unknown>): Schedule[] {
  if (Array.isArray(document["schedules"])) return document["schedules"] as Schedule[];
  return typeof document["schedule"] === "object" && document["schedule"] !== null ? [document["schedule"]] : [];
}

/** The zone of a pipeline's first schedule. */
export function zoneOfDocument(document: Record<string, unknown>): string {
  const zone = schedules(document)[0]?.timezone;
  return typeof zone === "string" ? zone : "UTC";
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** `cron 0 8 * * * America/New_York`, `sensor upstream-complete`. */
export function schedulesOf(document: Record<string, unknown>): string[] {
  return schedules(document).flatMap((schedule) => {
    const zone = text(schedule.timezone);
    const opens: string[] = [];
    if (text(schedule.cron) !== "") opens.push(`cron ${text(schedule.cron)}${zone === "" ? "" : ` ${zone}`}`);
    if (text(schedule.trigger?.key) !== "") opens.push(`sensor ${text(schedule.trigger?.key)}`);
    if (schedule.include !== undefined) opens.push("inclusion dates");
    return opens.length > 0 ? [opens.join(" or ")] : [];
  });
}

interface Rule {
  key?: unknown;
}

function keysOf(part: unknown): string[] {
  const rules = (part as { rules?: unknown } | undefined)?.rules;
  return Array.isArray(rules) ? (rules as Rule[]).map((rule) => text(rule.key)) : [];
}

/** Who reads a sensor: its rules, its trigger, the post-run rules. A key may carry a period after `#`. */
export function readersOf(document: Record<string, unknown>, key: string): string[] {
  const matches = (name: string) => name !== "" && (key === name || key.startsWith(`${name}#`));
  const found: string[] = [];
  if (schedules(document).some((schedule) => matches(text(schedule.trigger?.key)))) found.push("trigger");
  if (keysOf(document["validation"]).some(matches)) found.push("rules");
  if (keysOf(document["postRun"]).some(matches)) found.push("post-run");
  return found;
}
