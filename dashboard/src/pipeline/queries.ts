import { queryOptions } from "@tanstack/react-query";

import { api, data } from "../api/client";

export function pipelineQuery(pipeline: string) {
  return queryOptions({
    queryKey: ["pipeline", pipeline, "detail"],
    queryFn: async ({ signal }) =>
      data(await api.GET("/api/v1/pipelines/{pipeline}", { params: { path: { pipeline } }, signal })),
  });
}

export function runsQuery(pipeline: string) {
  return queryOptions({
    queryKey: ["pipeline", pipeline, "runs"],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/pipelines/{pipeline}/runs", {
          params: { path: { pipeline }, query: { limit: 200 } },
          signal,
        }),
      ),
  });
}
