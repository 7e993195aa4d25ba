import { useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { hub } from "../live/hub";
import { announcer } from "../shell/announcer";
import { readLanes } from "./query";
import { applyEvents, replaceLanes } from "./reducer";
import { ATTENTION, STANDING_WORDS, type Overview } from "./states";

const READ_AGAIN = 1000;
const MOST_LANES = 100;

/** Keep the lanes of a query live: events patch them at once, and those on screen are then read again for their words. */
export function useLiveLanes(queryKey: QueryKey, onScreen: () => readonly string[]): void {
  const queries = useQueryClient();
  const key = JSON.stringify(queryKey);
  const visible = useRef(onScreen);
  useEffect(() => {
    visible.current = onScreen;
  });
  useEffect(() => {
    const stopped = new AbortController();
    const touched = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | null = null;
    const shownKey = JSON.parse(key) as QueryKey;
    const readAgain = async () => {
      timer = null;
      const shown = queries.getQueryData<Overview>(shownKey);
      const ids = visible.current().filter((id) => touched.has(id)).slice(0, MOST_LANES);
      touched.clear();
      if (shown === undefined || ids.length === 0) return;
      const fresh = await readLanes(shown, ids, stopped.signal).catch(() => null);
      if (fresh === null || stopped.signal.aborted) return;
      queries.setQueryData<Overview>(shownKey, (now) => (now === undefined ? now : replaceLanes(now, fresh)));
    };
    const stop = hub.onBatch(({ told }) => {
      const before = queries.getQueryData<Overview>(shownKey);
      if (before === undefined || told.length === 0) return;
      const { overview, touched: changed, unknown } = applyEvents(before, told);
      if (overview !== before) {
        queries.setQueryData<Overview>(shownKey, overview);
        announce(before, overview, changed);
      }
      if (unknown) void queries.invalidateQueries({ queryKey: shownKey }, { cancelRefetch: false });
      changed.forEach((id) => touched.add(id));
      if (touched.size > 0) timer ??= setTimeout(() => void readAgain(), READ_AGAIN);
    });
    return () => {
      stop();
      stopped.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [queries, key]);
}

function announce(before: Overview, after: Overview, changed: ReadonlySet<string>): void {
  const old = new Map(before.items.map((lane) => [lane.id, lane.standing]));
  const worse = after.items.filter(
    (lane) => changed.has(lane.id) && old.get(lane.id) !== lane.standing && ATTENTION.has(lane.standing),
  );
  const first = worse[0];
  if (first === undefined) return;
  const more = worse.length > 1 ? ` and ${worse.length - 1} more` : "";
  announcer.announce(`${first.id} is ${STANDING_WORDS[first.standing]}${more}`);
}
