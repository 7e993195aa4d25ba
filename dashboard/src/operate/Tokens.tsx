import { useQuery, useQueryClient } from "@tanstack/react-query";

import { ActionButton } from "../actions/ActionButton";
import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import { useLimits, useMay } from "../api/session";
import { Ago } from "../parts/Ago";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { Expiry } from "./Expiry";
import { RotateDialog } from "./RotateDialog";
import { TokenDialog } from "./TokenDialog";

/** Who may do what: tokens are made, listed and revoked here; none is ever shown again. */
export function Tokens() {
  const limits = useLimits();
  const may = useMay("admin") && limits === null;
  const queries = useQueryClient();
  const tokens = useQuery({
    queryKey: ["tokens"],
    queryFn: async ({ signal }) => data(await api.GET("/api/v1/tokens", { signal })),
    enabled: may,
  });
  const refresh = () => void queries.invalidateQueries({ queryKey: ["tokens"] });
  // Only then: the row, and the dialog with its answer, would be gone.
  const closed = (close: () => void) => () => {
    close();
    refresh();
  };
  const revoke = async (name: string) => {
    const ended = data(await api.DELETE("/api/v1/tokens/{name}", { params: { path: { name } } }));
    return `revoked: ${ended.name}`;
  };
  return (
    <section>
      <h2>Tokens</h2>
      {!may && <p className="muted">Tokens need the scope admin{limits === null ? "" : ", of a token that is not limited to some pipelines"}.</p>}
      {tokens.isLoading && <Loading what="the tokens" />}
      {tokens.error !== null && tokens.data === undefined && <Failure error={tokens.error} retry={() => void tokens.refetch()} />}
      {may && (
        <ActionButton scope="admin" dialog={(close) => <TokenDialog first={tokens.data?.items.length === 0} onMade={refresh} onClose={close} />}>
          Make a token…
        </ActionButton>
      )}
      {tokens.data?.items.length === 0 && <p className="muted">There are none: the controller answers without one, on this machine only.</p>}
      {(tokens.data?.items.length ?? 0) > 0 && (
        <TableBox label="Tokens">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Scopes</th>
                <th>Limited to</th>
                <th>Made</th>
                <th>Expires</th>
                <th>Last used</th>
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
                    <Text>{[...token.pipelines, ...token.owners.map((owner) => `owner ${owner}`), ...token.networks].join(", ")}</Text>
                  </td>
                  <td>
                    <Time at={token.createdAt} zone="UTC" />
                  </td>
                  <td>
                    <Expiry at={token.expiresAt} />
                  </td>
                  <td>{typeof token.usedAt === "string" ? <Ago at={token.usedAt} /> : <span className="muted">not yet</span>}</td>
                  <td>
                    {typeof token.revokedAt === "string" ? (
                      "revoked"
                    ) : (
                      <div className="actions">
                        {!token.local && (
                          <ActionButton scope="admin" dialog={(close) => <RotateDialog name={token.name} onMade={refresh} onClose={close} />}>
                            Rotate…
                          </ActionButton>
                        )}
                        <ActionButton
                          scope="admin"
                          dialog={(close) => (
                            <ActionDialog title="Revoke a token" target={token.name} verb="Revoke it" danger reason={false} send={() => revoke(token.name)} onClose={closed(close)}>
                              <p>It works no more within a second, nor do sessions that were begun with it. This cannot be undone.</p>
                            </ActionDialog>
                          )}
                        >
                          Revoke…
                        </ActionButton>
                      </div>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
    </section>
  );
}
