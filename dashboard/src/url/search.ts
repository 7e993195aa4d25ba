// The search parameters of each page: filters, zoom, selection and zone live in the address, so that it can be pasted.
import { readEventSearch } from "../events/eventSearch";
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

export const RUN_TABS = ["rules", "log", "attempts", "events", "after", "raw"] as const;
export type RunTab = (typeof RUN_TABS)[number];

export interface RunSearch {
  tab?: RunTab;
}

export const runSearch = reading((reader): RunSearch => compact({ tab: reader.oneOf("tab", RUN_TABS) }));

export interface PipelineSearch {
  days?: 30 | 90;
}

export const pipelineSearch = reading((reader): PipelineSearch => {
  const days = reader.oneOf("days", ["30", "90"] as const);
  return compact({ days: days === undefined ? undefined : (Number(days) as 30 | 90) });
});

export const eventSearch = reading(readEventSearch);

export interface SlaSearch {
  weeks?: number;
}

export const slaSearch = reading((reader): SlaSearch => compact({ weeks: reader.whole("weeks", 1, 13) }));

export interface GraphSearch {
  root?: string;
  depth?: number;
  date?: string;
  as?: "picture" | "list";
}

export const graphSearch = reading(
  (reader): GraphSearch =>
    compact({
      root: reader.words("root", 128),
      depth: reader.whole("depth", 1, 3),
      date: reader.words("date", 32),
      as: reader.oneOf("as", ["picture", "list"] as const),
    }),
);

export interface HazardSearch {
  pipeline?: string;
}

export const hazardSearch = reading((reader): HazardSearch => compact({ pipeline: reader.words("pipeline", 128) }));

export const DELIVERY_STATES = ["waiting", "sent", "dead"] as const;

export interface AlertSearch {
  state?: (typeof DELIVERY_STATES)[number];
  channel?: string;
}

export const alertSearch = reading(
  (reader): AlertSearch => compact({ state: reader.oneOf("state", DELIVERY_STATES), channel: reader.words("channel", 128) }),
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
