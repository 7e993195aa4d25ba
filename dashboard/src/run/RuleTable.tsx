import type { Schemas } from "../api/client";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { Value } from "../parts/Value";

interface Props {
  rules: readonly Schemas["RuleResult"][];
  live: boolean;
  timezone: string;
}

/** What each rule came to. */
export function RuleTable({ rules, live, timezone }: Props) {
  if (rules.length === 0) return <p className="muted">Nothing is known of its rules.</p>;
  return (
    <TableBox label="Rules">
      <table>
        <caption>{live ? "As they stand now" : "As they were when the attempt was decided"}</caption>
        <thead>
          <tr>
            <th>Rule</th>
            <th>Check</th>
            <th>Actual</th>
            <th>Expected</th>
            <th>Why</th>
            <th>Since</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule, index) => (
            <tr key={index} data-mark={rule.passed ? "pass" : "fail"}>
              <th scope="row">
                <span className="mark">{rule.passed ? "passes" : "fails"}</span> <Text>{rule.key}</Text>
              </th>
              <td>
                <Text>{`${rule.field ?? ""} ${rule.check}`.trim()}</Text>
              </td>
              <td>
                <Value value={rule.actual} />
              </td>
              <td>
                <Value value={rule.expected} />
              </td>
              <td>
                <Text>{rule.reason}</Text>
              </td>
              <td>{typeof rule.since === "string" ? <Time at={rule.since} zone={timezone} /> : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}
