import { Link } from "@tanstack/react-router";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { shortMargin } from "./margin";
import { percent } from "./percent";

const FIRST = 100;

/** Compliance per pipeline and week, the worst first. */
export function ComplianceTable({ stats }: { stats: Schemas["SlaOverview"] }) {
  const [all, setAll] = useState(false);
  const items = all ? stats.items : stats.items.slice(0, FIRST);
  return (
    <section>
      <h2>Per pipeline and week</h2>
      <TableBox label="Compliance by week">
        <table className="compliance">
          <thead>
            <tr>
              <th>Pipeline</th>
              <th>Owner</th>
              <th>In time</th>
              {stats.weeks.map((week) => (
                <th key={week} scope="col">
                  {week.slice(5)}
                </th>
              ))}
              <th>Tightest tenth</th>
              <th>Typical</th>
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={item.pipeline}>
                <th scope="row">
                  <Link to="/pipelines/$pipeline" params={{ pipeline: item.pipeline }}>
                    <Text>{item.pipeline}</Text>
                  </Link>
                </th>
                <td>
                  <Text>{item.owner}</Text>
                </td>
                <td>
                  {percent(item.compliance)} <span className="muted">({item.late} of {item.runs} late)</span>
                </td>
                {item.weeks.map((week, index) => (
                  <td key={index} className="week" data-late={week !== null && week.late > 0 ? level(week.late / week.runs) : undefined}>
                    {week === null ? "" : week.late === 0 ? week.runs : `${week.late}/${week.runs}`}
                  </td>
                ))}
                <td>{typeof item.p10 === "number" ? shortMargin(item.p10) : ""}</td>
                <td>{typeof item.p50 === "number" ? shortMargin(item.p50) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableBox>
      {stats.items.length > FIRST && !all && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {stats.items.length}
        </button>
      )}
      <p className="muted">A week&apos;s number is its runs, or “late/all”. “Typical” is how long before its breach half of the runs are done; “tightest tenth”, what one
        run in ten does not reach.</p>
    </section>
  );
}

function level(part: number): string {
  return part < 0.15 ? "some" : part < 0.5 ? "many" : "most";
}
