import type { Schemas } from "../api/client";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";

interface Props {
  attempts: readonly Schemas["Attempt"][];
  timezone: string;
}

/** Every attempt: what opened it, when it passed, started and ended. */
export function AttemptTable({ attempts, timezone }: Props) {
  const when = (at: string | null | undefined) => (typeof at === "string" ? <Time at={at} zone={timezone} seconds /> : "");
  return (
    <TableBox label="Attempts">
      <table>
        <thead>
          <tr>
            <th>Attempt</th>
            <th>Because</th>
            <th>Opened</th>
            <th>Rules passed</th>
            <th>Job started</th>
            <th>Ended</th>
            <th>Outcome</th>
            <th>Job</th>
          </tr>
        </thead>
        <tbody>
          {attempts.map((one) => (
            <tr key={one.attempt}>
              <th scope="row">{one.attempt}</th>
              <td>
                <Text>{[one.source ?? "", one.openedBy || one.reason, one.requestedBy && `asked for by ${one.requestedBy}`].filter(Boolean).join(": ")}</Text>
              </td>
              <td>{when(one.openedAt)}</td>
              <td>{when(one.passedAt)}</td>
              <td>{when(one.triggeredAt)}</td>
              <td>{when(one.endedAt)}</td>
              <td>
                <Text>{one.outcome}</Text>
              </td>
              <td className="mono">
                <Text>{one.jobId || one.runId}</Text>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}
