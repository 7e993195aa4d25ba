import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import type { Schemas } from "../api/client";
import { Ago } from "../parts/Ago";
import { Failure } from "../parts/Failure";
import { JsonText } from "../parts/JsonText";
import { Loading } from "../parts/Loading";
import { TableBox } from "../parts/TableBox";
import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { Value } from "../parts/Value";
import { sensorsQuery } from "./queries";
import { readersOf } from "./zone";

const FIRST = 50;

/** What its sensors say: value, for which period, how old, who reads it, until when. */
export function SensorTable({ pipeline, timezone }: { pipeline: Schemas["PipelineDetail"]; timezone: string }) {
  const sensors = useQuery(sensorsQuery(pipeline.id));
  const [all, setAll] = useState(false);
  const items = sensors.data?.items ?? [];
  return (
    <section className="sensors">
      <h2>Sensors</h2>
      {sensors.isPending && <Loading what="its sensors" />}
      {sensors.error !== null && sensors.data === undefined && (
        <Failure error={sensors.error} retry={() => void sensors.refetch()} />
      )}
      {sensors.data !== undefined && items.length === 0 && <p className="muted">Nothing was written yet.</p>}
      {items.length > 0 && (
        <TableBox label="Sensors">
          <table>
            <thead>
              <tr>
                <th>Key</th>
                <th>Value</th>
                <th>For</th>
                <th>Age</th>
                <th>Read by</th>
                <th>Expires</th>
              </tr>
            </thead>
            <tbody>
              {items.slice(0, all ? items.length : FIRST).map((sensor) => (
                <tr key={sensor.key}>
                  <th scope="row">
                    <Text>{sensor.key}</Text>
                  </th>
                  <td>
                    <SensorValue data={sensor.data} />
                  </td>
                  <td>{sensor.period}</td>
                  <td>
                    <Ago at={sensor.receivedAt} zone={timezone} />
                  </td>
                  <td>{readersOf(pipeline.document, sensor.key).join(", ") || <span className="muted">nothing</span>}</td>
                  <td>
                    {typeof sensor.ttl === "number" && <Time at={new Date(sensor.ttl * 1000).toISOString()} zone={timezone} />}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </TableBox>
      )}
      {items.length > FIRST && !all && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {items.length}
        </button>
      )}
      {typeof sensors.data?.next === "string" && all && <p className="muted">Only the first {items.length} are shown.</p>}
    </section>
  );
}

function SensorValue({ data }: { data: Record<string, unknown> }) {
  const [open, setOpen] = useState(false);
  const text = JSON.stringify(data);
  if (text.length <= 120) return <Value value={data} />;
  return (
    <>
      <Value value={data} />{" "}
      <button type="button" className="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "less" : "all"}
      </button>
      {open && <JsonText value={data} />}
    </>
  );
}
