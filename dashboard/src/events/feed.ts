// The list of the Events page: the newest first, each once, bounded. Pure.
import type { EventView, Told } from "../live/stream";
import type { EventSearch } from "./eventSearch";

export const MOST = 10_000;
const RANKS: Record<string, number> = { info: 0, warning: 1, error: 2, critical: 3 };

/** Does a live event fit the filter? As the controller judges pages of the past. */
export function fits(event: EventView, search: EventSearch): boolean {
  if (search.pipeline !== undefined && event.pipelineId !== search.pipeline) return false;
  if (search.type !== undefined && event.type !== search.type) return false;
  if (search.severity !== undefined && (RANKS[event.severity] ?? 0) < (RANKS[search.severity] ?? 0)) return false;
  if (search.q === undefined) return true;
  const text = `${event.message}\n${event.pipelineId}\n${event.type}\n${event.date}`.toLowerCase();
  return text.includes(search.q.toLowerCase());
}

/** New events in front of the known ones: in their order, without repeats, no more than so many. */
export function prepend(known: readonly EventView[], told: readonly Told[], search: EventSearch, most = MOST): readonly EventView[] {
  const seen = new Set(known.slice(0, 2000).map((event) => event.id));
  const fresh: EventView[] = [];
  for (const { event } of told) {
    if (!seen.has(event.id) && fits(event, search)) {
      seen.add(event.id);
      fresh.push(event);
    }
  }
  if (fresh.length === 0) return known;
  return [...fresh.reverse(), ...known].slice(0, most);
}

/** Older events behind the known ones. */
export function append(known: readonly EventView[], older: readonly EventView[], most = MOST): readonly EventView[] {
  const seen = new Set(known.map((event) => event.id));
  return [...known, ...older.filter((event) => !seen.has(event.id))].slice(0, most);
}
