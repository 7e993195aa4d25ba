import { useQueryClient, type QueryKey } from "@tanstack/react-query";
import { useEffect } from "react";

import { useNow } from "../time/useNow";

const HOUR = 3_600_000;

/** When an hour begins, the columns move on: the overview is read again. */
export function useHourly(queryKey: QueryKey): void {
  const queries = useQueryClient();
  const hour = Math.floor(useNow(5000) / HOUR);
  const key = JSON.stringify(queryKey);
  useEffect(() => {
    if (hour > 0) void queries.invalidateQueries({ queryKey: JSON.parse(key) as QueryKey }, { cancelRefetch: false });
  }, [queries, key, hour]);
}
