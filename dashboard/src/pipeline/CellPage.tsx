import { useQuery } from "@tanstack/react-query";
import { Link, Navigate, useParams, useSearch } from "@tanstack/react-router";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";
import { columnOfRun, type Columns } from "../overview/columns";
import { local } from "../time/zones";
import { pipelineQuery, runsQuery } from "./queries";
import { RunList } from "./RunList";
import { zoneOfDocument } from "./zone";

/** How long the name of a day is; that of an hour is longer. */
const DAY = "2026-03-03".length;

/** What happened in one hour or on one day: the run itself where there is one, a list where there are several. */
export function CellPage() {
  const { pipeline } = useParams({ from: "/pipelines/$pipeline/cell" });
  const { at, bucket } = useSearch({ from: "/pipelines/$pipeline/cell" });
  const detail = useQuery(pipelineQuery(pipeline));
  const runs = useQuery(runsQuery(pipeline));
  const error = detail.error ?? runs.error;
  if (error !== null) return <Failure error={error} retry={() => void Promise.all([detail.refetch(), runs.refetch()])} />;
  if (detail.data === undefined || runs.data === undefined) return <Loading what="the runs" />;
  const columns: Columns = { bucket: bucket ?? "hour", from: Date.parse(at ?? ""), count: 1 };
  const zone = zoneOfDocument(detail.data.document);
  const found = runs.data.items.filter((run) => columnOfRun(columns, run.date, zone, run.openedAt) === 0);
  const [only] = found;
  if (found.length === 1 && only !== undefined) {
    const { schedule, date } = only;
    return <Navigate to="/pipelines/$pipeline/runs/$schedule/$date" params={{ pipeline, schedule, date }} replace />;
  }
  const [schedule] = detail.data.schedules;
  if (found.length === 0 && schedule !== undefined) {
    const begin = local(columns.from, columns.bucket === "day" ? "UTC" : zone);
    const hourly = columns.bucket === "hour" && runs.data.items.some((run) => run.date.length > DAY);
    const date = `${begin.year}-${begin.month}-${begin.day}${hourly ? `T${begin.hour}` : ""}`;
    return <Navigate to="/pipelines/$pipeline/runs/$schedule/$date" params={{ pipeline, schedule, date }} replace />;
  }
  return (
    <article className="page">
      <h1>
        <Link to="/pipelines/$pipeline" params={{ pipeline }}>
          <Text>{pipeline}</Text>
        </Link>
      </h1>
      <p>{found.length} runs</p>
      <RunList runs={found} />
    </article>
  );
}
