import type { Schemas } from "../api/client";
import { useMay } from "../api/session";
import { LongText } from "../parts/LongText";
import { TableBox } from "../parts/TableBox";
import { Time } from "../parts/Time";
import { JobOutput } from "./JobOutput";

/** What the job log says of a run, and what its jobs wrote. */
export function JobLog({ run, timezone }: { run: Schemas["RunDetail"]; timezone: string }) {
  const may = useMay("operate");
  const started = run.attempts.filter((one) => one.runId !== "");
  return (
    <>
      {run.jobLog.length === 0 ? (
        <p className="muted">The job log is empty.</p>
      ) : (
        <TableBox label="Job log">
          <table>
            <thead>
              <tr>
                <th>When</th>
                <th>Attempt</th>
                <th>What</th>
                <th>Category</th>
                <th>Said</th>
              </tr>
            </thead>
            <tbody>
              {run.jobLog.map((record, index) => (
                <tr key={index}>
                  <td>
                    <Time at={record.at} zone={timezone} seconds />
                  </td>
                  <td>{record.attempt}</td>
                  <td>{record.event}</td>
                  <td>{record.category ?? ""}</td>
                  <td>
                    <LongText>{(record as { error?: string }).error ?? ""}</LongText>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
      <h2>Output</h2>
      {!may && <p className="muted">Reading what jobs wrote needs the scope operate.</p>}
      {may && started.length === 0 && <p className="muted">No job was started.</p>}
      {may &&
        started.map((one) => (
          <JobOutput
            key={one.runId}
            pipeline={run.pipeline}
            runId={one.runId}
            attempt={one.attempt}
            running={one.attempt === run.attempt && run.word === "running"}
          />
        ))}
    </>
  );
}
