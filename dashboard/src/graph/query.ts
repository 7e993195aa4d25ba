import { queryOptions } from "@tanstack/react-query";

import { api, data } from "../api/client";

/** What runs after what, around one pipeline. */
export function graphQuery(root: string, depth: number, date: string | undefined) {
  return queryOptions({
    queryKey: ["graph", root, depth, date ?? ""],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/graph", {
          params: { query: { root, depth, ...(date === undefined ? {} : { date }) } },
          signal,
        }),
      ),
  });
}
