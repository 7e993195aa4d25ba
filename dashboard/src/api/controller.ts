import { queryOptions } from "@tanstack/react-query";

import { api, data } from "./client";

/** The one thing that is asked again and again, while the page is visible: is the watchdog alive, what troubles it. */
export const controllerQuery = queryOptions({
  queryKey: ["controller"],
  queryFn: async ({ signal }) => data(await api.GET("/api/v1/controller", { signal })),
  refetchInterval: 15_000,
  refetchIntervalInBackground: false,
});
