import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { hub, seqOf } from "../live/hub";

/** Where something may have been missed, everything that is shown is read again. */
export function useGaps(): void {
  const queries = useQueryClient();
  useEffect(
    () =>
      hub.onGap((since) => {
        void queries.invalidateQueries({
          predicate: (query) => {
            if (query.queryKey[0] !== "overview") return query.queryKey[0] !== "session";
            // An overview says which events it has seen; one that is being read will say so when it is there.
            const position = (query.state.data as { position: string } | undefined)?.position;
            return position !== undefined && seqOf(position) < since;
          },
        });
      }),
    [queries],
  );
}
