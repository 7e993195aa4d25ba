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

/** Why the run that people mean without naming one stands as it does. */
export function nowQuery(pipeline: string) {
  return queryOptions({
    queryKey: ["pipeline", pipeline, "why"],
    queryFn: async ({ signal }) =>
      data(await api.GET("/api/v1/pipelines/{pipeline}/why", { params: { path: { pipeline } }, signal })),
  });
}

export function trendQuery(pipeline: string, days: number) {
  return queryOptions({
    queryKey: ["pipeline", pipeline, "trend", String(days)],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/pipelines/{pipeline}/trend", {
          params: { path: { pipeline }, query: { days } },
          signal,
        }),
      ),
  });
}

export function upcomingQuery(pipeline: string) {
  return queryOptions({
    queryKey: ["pipeline", pipeline, "upcoming"],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/pipelines/{pipeline}/upcoming", {
          params: { path: { pipeline }, query: { days: 7 } },
          signal,
        }),
      ),
  });
}

export function sensorsQuery(pipeline: string) {
  return queryOptions({
    queryKey: ["pipeline", pipeline, "sensors"],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/pipelines/{pipeline}/sensors", {
          params: { path: { pipeline }, query: { limit: 500 } },
          signal,
        }),
      ),
  });
}
