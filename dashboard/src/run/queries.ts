import { queryOptions } from "@tanstack/react-query";

import { api, data } from "../api/client";
import { ApiError } from "../api/problem";

export interface RunKey {
  pipeline: string;
  schedule: string;
  date: string;
}

/** Why it ran, or why it has not: also of a period that never ran. */
export function whyQuery({ pipeline, schedule, date }: RunKey) {
  return queryOptions({
    queryKey: ["run", pipeline, schedule, date, "why"],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/pipelines/{pipeline}/why", {
          params: { path: { pipeline }, query: { schedule, date } },
          signal,
        }),
      ),
  });
}

/** The run with everything that hangs on it; null for a period that never ran. */
export function runQuery({ pipeline, schedule, date }: RunKey) {
  return queryOptions({
    queryKey: ["run", pipeline, schedule, date, "detail"],
    queryFn: async ({ signal }) => {
      try {
        return data(
          await api.GET("/api/v1/pipelines/{pipeline}/runs/{schedule}/{date}", {
            params: { path: { pipeline, schedule, date } },
            signal,
          }),
        );
      } catch (error) {
        if (error instanceof ApiError && error.status === 404 && error.slug === "not-found") return null;
        throw error;
      }
    },
  });
}
