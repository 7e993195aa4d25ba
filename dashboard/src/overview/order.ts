// The order of the lanes: worst first. It is kept while somebody points at them: rows never move under the pointer.
import { ATTENTION, rank, type Lane } from "./states";

export type Group = "none" | "owner";

export type Entry =
  | { kind: "heading"; id: string; title: string; count: number }
  | { kind: "lane"; id: string; lane: Lane };

/** The worst first; of those the one whose breach is nearest; then by name. */
export function compareLanes(one: Lane, other: Lane): number {
  const worse = rank(one.standing) - rank(other.standing);
  if (worse !== 0) return worse;
  const breach = breachOf(one) - breachOf(other);
  if (ATTENTION.has(one.standing) && breach !== 0) return breach;
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}

function breachOf(lane: Lane): number {
  const at = lane.sla?.breachAt;
  return at === null || at === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(at);
}

/** A place for every lane: its group, and its order within. */
export interface Place {
  id: string;
  group: string;
}

export function arrange(lanes: readonly Lane[], group: Group): Place[] {
  const sorted = [...lanes].sort(compareLanes);
  if (group === "none") {
    const urgent = sorted.filter((lane) => ATTENTION.has(lane.standing));
    const rest = sorted.filter((lane) => !ATTENTION.has(lane.standing));
    return [
      ...urgent.map((lane) => ({ id: lane.id, group: "Needs attention" })),
      ...rest.map((lane) => ({ id: lane.id, group: "All" })),
    ];
  }
  const owners = [...new Set(sorted.map((lane) => lane.owner))].sort();
  return owners.flatMap((owner) =>
    sorted.filter((lane) => lane.owner === owner).map((lane) => ({ id: lane.id, group: owner || "no owner" })),
  );
}

/** How many lanes have another place than the one they are shown in. */
export function moved(shown: readonly Place[], wanted: readonly Place[]): number {
  const known = new Set(shown.map((place) => place.id));
  const groups = new Map(shown.map((place) => [place.id, place.group]));
  const before = shown.map((place) => place.id);
  const after = wanted.filter((place) => known.has(place.id));
  let count = after.filter((place) => groups.get(place.id) !== place.group).length;
  const regrouped = new Set(after.filter((place) => groups.get(place.id) !== place.group).map((place) => place.id));
  const stay = before.filter((id) => !regrouped.has(id));
  const stayAfter = after.map((place) => place.id).filter((id) => !regrouped.has(id));
  count += outOfOrder(stay, stayAfter);
  return count;
}

/** How many must move to turn one order into the other: all but those of the longest run that keeps its order. */
function outOfOrder(before: readonly string[], after: readonly string[]): number {
  const index = new Map(before.map((id, position) => [id, position]));
  const tails: number[] = [];
  for (const id of after) {
    const position = index.get(id);
    if (position === undefined) continue;
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((tails[middle] ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    tails[low] = position;
  }
  return after.length - tails.length;
}

/** The rows to show: headings with their numbers, and lanes where they were placed. New lanes come last. */
export function entries(lanes: readonly Lane[], places: readonly Place[]): Entry[] {
  const byId = new Map(lanes.map((lane) => [lane.id, lane]));
  const placed = places.filter((place) => byId.has(place.id));
  const known = new Set(placed.map((place) => place.id));
  const all = [...placed, ...lanes.filter((lane) => !known.has(lane.id)).map((lane) => ({ id: lane.id, group: "New" }))];
  const counts = new Map<string, number>();
  for (const place of all) counts.set(place.group, (counts.get(place.group) ?? 0) + 1);
  const found: Entry[] = [];
  let group: string | null = null;
  for (const place of all) {
    if (place.group !== group) {
      group = place.group;
      found.push({ kind: "heading", id: `heading ${group}`, title: group, count: counts.get(group) ?? 0 });
    }
    const lane = byId.get(place.id);
    if (lane !== undefined) found.push({ kind: "lane", id: place.id, lane });
  }
  return found;
}
