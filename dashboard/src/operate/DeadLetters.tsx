import { useQuery, useQueryClient } from "@tanstack/react-query";

import { ActionButton } from "../actions/ActionButton";
import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import { useLimits, useMay } from "../api/session";
import { Failure } from "../parts/Failure";
import { JsonText } from "../parts/JsonText";
import { Loading } from "../parts/Loading";
import { LongText } from "../parts/LongText";
import { TableBox } from "../parts/TableBox";
import { Time } from "../parts/Time";

/** What was given up, whole, and the way back. */
export function DeadLetters() {
  const limits = useLimits();
  const may = useMay("operate") && limits === null;
  const queries = useQueryClient();
  const letters = useQuery({
    queryKey: ["dlq"],
    queryFn: async ({ signal }) => data(await api.GET("/api/v1/dlq", { params: { query: { limit: 100 } }, signal })),
    enabled: may,
  });
  // Only then: with the last letter the dialog and its answer would be gone.
  const closed = (close: () => void) => () => {
    close();
    void queries.invalidateQueries({ queryKey: ["dlq"] });
  };
  const redrive = async () => {
    const { redriven } = data(await api.POST("/api/v1/dlq/redrive", { body: { ids: null } }));
    return `${redriven} redriven`;
  };
  const items = letters.data?.items ?? [];
  return (
    <section>
      <h2>Dead letters</h2>
      {!may && <p className="muted">Dead letters need the scope operate{limits === null ? "" : ", of a token that is not limited to some pipelines"}.</p>}
      {letters.isLoading && <Loading what="the dead letters" />}
      {letters.error !== null && letters.data === undefined && <Failure error={letters.error} retry={() => void letters.refetch()} />}
      {letters.data !== undefined && items.length === 0 && <p className="muted">None: nothing was given up.</p>}
      {items.length > 0 && (
        <>
          <ActionButton
            scope="operate"
            everywhere
            dialog={(close) => (
              <ActionDialog title="Redrive" target={`${items.length} dead letters`} verb="Redrive all" reason={false} send={redrive} onClose={closed(close)}>
                <p>Each goes back to who failed on it, and is tried again.</p>
              </ActionDialog>
            )}
          >
            Redrive all…
          </ActionButton>
          <TableBox label="Dead letters">
            <table>
              <thead>
                <tr>
                  <th>Number</th>
                  <th>Of</th>
                  <th>Last tried</th>
                  <th>Tries</th>
                  <th>Error</th>
                  <th>Record</th>
                </tr>
              </thead>
              <tbody>
                {items.map((letter) => (
                  <tr key={letter.id}>
                    <th scope="row">{letter.id}</th>
                    <td>
                      {letter.source} ({letter.kind})
                    </td>
                    <td>
                      <Time at={letter.lastAt} zone="UTC" />
                    </td>
                    <td>{letter.tries}</td>
                    <td>
                      <LongText>{letter.error}</LongText>
                    </td>
                    <td>
                      <details>
                        <summary>show</summary>
                        <JsonText value={letter.record} />
                      </details>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </TableBox>
        </>
      )}
    </section>
  );
}
