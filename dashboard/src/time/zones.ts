// Instants as people read them. Every time names its zone; a period is a name and is never converted.

export type ZoneChoice = "pipeline" | "viewer" | "utc";
export const ZONE_CHOICES: readonly ZoneChoice[] = ["pipeline", "viewer", "utc"];

export function viewerZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** The zone to show a pipeline's times in. */
export function zoneOf(choice: ZoneChoice, pipelineZone: string | undefined): string {
  if (choice === "utc") return "UTC";
  if (choice === "viewer") return viewerZone();
  return pipelineZone ?? "UTC";
}

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: string, locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${locale} ${zone} ${JSON.stringify(options)}`;
  let made = formats.get(key);
  if (made === undefined) {
    try {
      made = new Intl.DateTimeFormat(locale, { ...options, timeZone: zone });
    } catch {
      made = new Intl.DateTimeFormat(locale, { ...options, timeZone: "UTC" }); // a zone this browser does not know
    }
    formats.set(key, made);
  }
  return made;
}

export interface Local {
  year: string;
  month: string;
  day: string;
  hour: string;
  minute: string;
  second: string;
  weekday: string;
}

/** The parts of an instant on the wall clock of a zone. */
export function local(at: number, zone: string): Local {
  const parts = format(zone, "en-US", {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    weekday: "short",
    hourCycle: "h23",
  }).formatToParts(at);
  const found = Object.fromEntries(parts.map((part) => [part.type, part.value]));
  return {
    year: (found["year"] ?? "").padStart(4, "0"),
    month: found["month"] ?? "",
    day: found["day"] ?? "",
    hour: found["hour"] ?? "",
    minute: found["minute"] ?? "",
    second: found["second"] ?? "",
    weekday: found["weekday"] ?? "",
  };
}

// No single language has a short name for every zone: English as spoken there does.
const LANGUAGES = ["en-US", "en-GB", "en-AU", "en-IN", "en-ZA"];

/** `EST`, `CET`, `UTC`; the offset for a zone without a name. */
export function abbreviation(at: number, zone: string): string {
  if (zone === "UTC" || zone === "Etc/UTC") return "UTC";
  let shown = "";
  for (const language of LANGUAGES) {
    const parts = format(zone, language, { hour: "2-digit", timeZoneName: "short" }).formatToParts(at);
    shown = parts.find((part) => part.type === "timeZoneName")?.value ?? "";
    if (shown !== "" && !/^(GMT|UTC)/.test(shown)) return shown;
  }
  return shown.replace("GMT", "UTC");
}

export function dateOf(at: number, zone: string): string {
  const { year, month, day } = local(at, zone);
  return `${year}-${month}-${day}`;
}

/** `10:50 EST`; with its date where that is not today's; with seconds where they matter. */
export function formatTime(at: number, zone: string, now: number, seconds = false): string {
  const { hour, minute, second } = local(at, zone);
  const day = dateOf(at, zone);
  const shown = `${hour}:${minute}${seconds ? `:${second}` : ""} ${abbreviation(at, zone)}`;
  return day === dateOf(now, zone) ? shown : `${day} ${shown}`;
}

const DAY = 86_400_000;

/** `10:50 EST`, `Wed 08:00 EST` within a week, otherwise with the date: for what is near in a narrow place. */
export function formatNear(at: number, zone: string, now: number): string {
  const { hour, minute, weekday } = local(at, zone);
  const shown = `${hour}:${minute} ${abbreviation(at, zone)}`;
  const day = dateOf(at, zone);
  if (day === dateOf(now, zone)) return shown;
  return Math.abs(at - now) < 6 * DAY ? `${weekday} ${shown}` : `${day} ${shown}`;
}

/** The same instant for the pipeline, for whoever looks, and in UTC. */
export function inAllZones(at: number, pipelineZone: string | undefined): string {
  const zones = [...new Set([pipelineZone ?? "UTC", viewerZone(), "UTC"])];
  return zones
    .map((zone) => {
      const { hour, minute, second } = local(at, zone);
      return `${dateOf(at, zone)} ${hour}:${minute}:${second} ${abbreviation(at, zone)}`;
    })
    .join("\n");
}
