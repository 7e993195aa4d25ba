import { useQuery, useQueryClient } from "@tanstack/react-query";

import { ActionButton } from "../actions/ActionButton";
import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import { useMay } from "../api/session";
import { Failure } from "../parts/Failure";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { TokenDialog } from "./TokenDialog";

/** Who may do what: tokens are made, listed and revoked here; none is ever shown again. */
export function Tokens() {
  const may = useMay("admin");
  const queries = useQueryClient();
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: async ({ signal }) => data(await api.GET("/api/v1/tokens", { signal })),
    enabled: may,
  });
  const refresh = () => void queries.invalidateQueries({ queryKey: ["tokens"] });
  const revoke = async (name: string) => {
    const ended = data(await api.DELETE("/api/v1/tokens/{name}", { params: { path: { name } } }));
    refresh();
    return `revoked: ${ended.name}`;
  };
  return (
    <section>
      <h2>Tokens</h2>
      {!may && <p className="muted">Tokens need the scope admin.</p>}
      {tokens.error !== null && tokens.data === undefined && <Failure error={tokens.error} retry={() => void tokens.refetch()} />}
      {may && (
        <ActionButton scope="admin" dialog={(close) => <TokenDialog first={tokens.data?.items.length === 0} onMade={refresh} onClose={close} />}>
          Make a token…
        </ActionButton>
      )}
      {tokens.data?.items.length === 0 && <p className="muted">There are none: the controller answers without one, on this machine only.</p>}
      {(tokens.data?.items.length ?? 0) > 0 && (
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Scopes</th>
              <th>Limited to</th>
              <th>Made</th>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {tokens.data?.items.map((token) => (
              <tr key={token.id}>
                <th scope="row">
                  <Text>{token.name}</Text>
                </th>
                <td>{token.scopes.join(", ")}</td>
                <td>
                  <Text>{[...token.pipelines, ...token.owners.map((owner) => `owner ${owner}`)].join(", ")}</Text>
                </td>
                <td>
                  <Time at={token.createdAt} zone="UTC" />
                </td>
                <td>
                  {typeof token.revokedAt === "string" ? (
                    "revoked"
                  ) : (
                    <ActionButton
                      scope="admin"
                      dialog={(close) => (
                        <ActionDialog title="Revoke a token" target={token.name} verb="Revoke it" danger reason={false} send={() => revoke(token.name)} onClose={close}>
                          <p>It works no more within a second, nor do sessions that were begun with it. This cannot be undone.</p>
                        </ActionDialog>
                      )}
                    >
                      Revoke…
                    </ActionButton>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
