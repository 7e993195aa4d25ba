import { useQuery } from "@tanstack/react-query";

import { api, data } from "../api/client";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";

export function useRoutes(enabled: boolean) {
  return useQuery({
    queryKey: ["alerts", "routes"],
    queryFn: async ({ signal }) => data(await api.GET("/api/v1/alerts/routes", { signal })),
    enabled,
  });
}

/** The channels in force, and which events go there. */
export function ChannelList() {
  const routes = useRoutes(true);
  return (
    <section>
      <h2>Channels</h2>
      {routes.isLoading && <Loading what="the channels" />}
      {routes.error !== null && routes.data === undefined && <Failure error={routes.error} retry={() => void routes.refetch()} />}
      {routes.data?.items.length === 0 && (
        <p className="muted">
          None is configured here: add <code>[[alerts]]</code> to interlock.toml. Over AWS the function alert-dispatcher sends them, by its
          own settings: its log in CloudWatch says what it does.
        </p>
      )}
      <ul>
        {routes.data?.items.map((route) => (
          <li key={route.name}>
            <b>
              <Text>{route.name}</Text>
            </b>{" "}
            <span className="muted">
              {route.channel}, {route.severity === "critical" ? "critical" : `${route.severity} and worse`}
              {route.filtered ? ", by a pattern" : ""}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
