import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { span } from "../time/spans";
import { useNow } from "../time/useNow";

/** The latest runs: those that are not done yet first. */
export function WorstRuns({ runs }: { runs: readonly Schemas["WorstRun"][] }) {
  const now = useNow(10_000);
  if (runs.length === 0) return null;
  return (
    <section>
      <h2>Worst</h2>
      <TableBox label="Worst runs">
        <table>
          <thead>
            <tr>
              <th>Run</th>
              <th>Late by</th>
              <th>Breach</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <tr key={`${run.pipeline} ${run.schedule} ${run.date}`}>
                <th scope="row">
                  <Link
                    to="/pipelines/$pipeline/runs/$schedule/$date"
                    params={{ pipeline: run.pipeline, schedule: run.schedule, date: run.date }}
                  >
                    <Text>{`${run.pipeline} ${run.date}`}</Text>
                  </Link>
                </th>
                <td data-word="failed">
                  {typeof run.marginSeconds === "number"
                    ? span(run.marginSeconds * 1000)
                    : typeof run.breachAt === "string"
                      ? `${span(now - Date.parse(run.breachAt))}, not done`
                      : "not done"}
                </td>
                <td>{typeof run.breachAt === "string" && <Time at={run.breachAt} zone="UTC" />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableBox>
    </section>
  );
}
