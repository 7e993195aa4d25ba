import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { hub } from "../live/hub";

/** Where something may have been missed, everything that is shown is read again. */
export function useGaps(): void {
  const queries = useQueryClient();
  useEffect(
    () =>
      hub.onGap(() => {
        void queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== "session" });
      }),
    [queries],
  );
}
