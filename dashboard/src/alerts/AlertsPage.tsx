import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { ActionButton } from "../actions/ActionButton";
import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import { useLimits, useMay } from "../api/session";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { LongText } from "../parts/LongText";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { type AlertSearch, DELIVERY_STATES } from "../url/search";
import { ChannelList, useRoutes } from "./ChannelList";
import { useLiveAlerts } from "./useLiveAlerts";

/** The type of an event, which its id names: `gold/1772533802689#SLA_BREACH#7c`. */
function typeOf(eventId: string): string {
  return eventId.split("#")[1] ?? "";
}

/** Which alerts go where, how they fared, and a test of the channels. */
export function AlertsPage() {
  const limits = useLimits();
  const may = useMay("operate") && limits === null;
  const search = useSearch({ from: "/alerts" });
  const { state, channel } = search;
  const navigate = useNavigate();
  const filtered = state !== undefined || channel !== undefined;
  const alerts = useQuery({
    queryKey: ["alerts", "deliveries", state ?? "", channel ?? ""],
    queryFn: async ({ signal }) =>
      data(await api.GET("/api/v1/alerts", { params: { query: { limit: 100, ...(state && { state }), ...(channel && { channel }) } }, signal })),
    enabled: may,
  });
  const routes = useRoutes(may);
  const channels = new Set([...(routes.data?.items ?? []).map((route) => route.name), ...(channel === undefined ? [] : [channel])]);
  const narrow = (change: AlertSearch) => void navigate({ to: "/alerts", search: { ...search, ...change } });
  useLiveAlerts(alerts.data?.items);
  const test = async () => {
    const { channels } = data(await api.POST("/api/v1/alerts:test", { body: { channel: null } }));
    if (channels.length === 0) return "no channel is configured";
    return channels.map((one) => `${one.channel}: ${one.ok ? "taken" : one.error}`).join("\n");
  };
  return (
    <article className="page">
      <h1>Alerts</h1>
      {!may && <p className="state muted">Alerts need the scope operate{limits === null ? "" : ", of a token that is not limited to some pipelines"}.</p>}
      {may && (
        <>
          <ChannelList />
          <ActionButton
            scope="operate"
            dialog={(close) => (
              <ActionDialog title="Test the channels" target="all channels" verb="Send a test alert" reason={false} send={test} onClose={close}>
                <p>A test alert is sent on every channel at once; the answer says what became of each.</p>
              </ActionDialog>
            )}
          >
            Test the channels…
          </ActionButton>
          <section>
            <h2>Deliveries</h2>
            <div className="bar flush">
              <select
                aria-label="State"
                value={state ?? ""}
                onChange={(event) => narrow({ state: (event.target.value || undefined) as AlertSearch["state"] })}
              >
                <option value="">all states</option>
                {DELIVERY_STATES.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
              <select aria-label="Channel" value={channel ?? ""} onChange={(event) => narrow({ channel: event.target.value || undefined })}>
                <option value="">all channels</option>
                {[...channels].map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </div>
            {alerts.isPending && <Loading what="the deliveries" />}
            {alerts.error !== null && alerts.data === undefined && <Failure error={alerts.error} retry={() => void alerts.refetch()} />}
            {alerts.data?.items.length === 0 && <p className="muted">{filtered ? "No delivery fits." : "No alert was sent yet."}</p>}
            {(alerts.data?.items.length ?? 0) > 0 && (
              <TableBox label="Deliveries">
                <table>
                  <thead>
                    <tr>
                      <th>Queued</th>
                      <th>Channel</th>
                      <th>Pipeline</th>
                      <th>Event</th>
                      <th>State</th>
                      <th>Tries</th>
                      <th>Next or settled</th>
                      <th>Error</th>
                    </tr>
                  </thead>
                  <tbody>
                    {alerts.data?.items.map((one) => (
                      <tr key={one.id}>
                        <td>
                          <Time at={one.queuedAt} zone="UTC" seconds />
                        </td>
                        <td>
                          <Text>{one.channel}</Text>
                        </td>
                        <th scope="row">
                          <Text>{one.pipeline}</Text>
                        </th>
                        <td className="mono">
                          <Text>{typeOf(one.eventId)}</Text>
                        </td>
                        <td data-word={one.state === "sent" ? "done" : one.state === "dead" ? "failed" : "waiting"}>{one.state}</td>
                        <td>{one.tries}</td>
                        <td>{typeof (one.settledAt ?? one.dueAt) === "string" && <Time at={one.settledAt ?? one.dueAt ?? ""} zone="UTC" />}</td>
                        <td>
                          <LongText>{(one as { error?: string }).error ?? ""}</LongText>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </TableBox>
            )}
          </section>
        </>
      )}
    </article>
  );
}
