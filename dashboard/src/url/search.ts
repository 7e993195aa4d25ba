// The search parameters of each page: filters, zoom, selection and zone live in the address, so that it can be pasted.
import { notices } from "../shell/notices";
import { SPANS, type Span } from "../overview/columns";
import type { Group } from "../overview/order";
import { STANDINGS, type Standing } from "../overview/states";
import { ZONE_CHOICES, type ZoneChoice } from "../time/zones";
import { compact, Reader, type Raw } from "./read";

export interface RootSearch {
  zone?: ZoneChoice;
}

export interface OverviewSearch {
  span?: Span;
  state?: Standing[];
  owner?: string;
  q?: string;
  group?: Group;
  sel?: string;
}

const GROUPS: readonly Group[] = ["none", "owner"];

function tell(reader: Reader): void {
  for (const name of reader.dropped) {
    notices.add(`The address had a value for “${name}” that this page does not know; it was left out.`);
  }
}

function reading<T>(read: (reader: Reader) => T): (raw: Raw) => T {
  return (raw) => {
    const reader = new Reader(raw);
    const found = read(reader);
    tell(reader);
    return found;
  };
}

export const rootSearch = reading((reader): RootSearch => compact({ zone: reader.oneOf("zone", ZONE_CHOICES) }));

export const overviewSearch = reading(
  (reader): OverviewSearch =>
    compact({
      span: reader.oneOf("span", SPANS),
      state: reader.someOf("state", STANDINGS),
      owner: reader.words("owner"),
      q: reader.words("q"),
      group: reader.oneOf("group", GROUPS),
      sel: reader.words("sel"),
    }),
);

export interface CellSearch {
  at?: string;
  bucket?: "hour" | "day";
}

export const cellSearch = reading(
  (reader): CellSearch =>
    compact({ at: reader.instant("at"), bucket: reader.oneOf("bucket", ["hour", "day"] as const) }),
);

/** Search as an address: lists with commas, nothing quoted. */
export function stringifySearch(search: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search as Record<string, string | number | boolean | string[] | null>)) {
    if (value === null || value === "" || typeof value === "undefined") continue;
    parameters.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text.replaceAll("%2C", ",").replaceAll("%3A", ":")}`;
}

export function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}
