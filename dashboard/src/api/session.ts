import { queryOptions, useQuery } from "@tanstack/react-query";

import { api, data, type Schemas } from "./client";

export type Session = Schemas["SessionView"];
export type Scope = Schemas["Scope"];

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async ({ signal }) => data(await api.GET("/api/v1/session", { signal })),
  retry: false,
  staleTime: Infinity,
});

export function useSession(): Session | undefined {
  return useQuery(sessionQuery).data;
}

/** May the reader do this at all? Limits to pipelines are the controller's to judge. */
export function useMay(scope: Scope): boolean {
  return useSession()?.scopes.includes(scope) ?? false;
}
