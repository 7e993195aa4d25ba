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

/** What the token is limited to: pipelines, and owners; null when to nothing. */
export function useLimits(): string | null {
  const session = useSession();
  if (session === undefined) return null;
  const limits = [...session.pipelines, ...session.owners.map((owner) => `owner ${owner}`)];
  return limits.length === 0 ? null : limits.join(", ");
}

/** May the reader do this at all? Limits to pipelines are the controller's to judge. */
export function useMay(scope: Scope): boolean {
  return useSession()?.scopes.includes(scope) ?? false;
}
