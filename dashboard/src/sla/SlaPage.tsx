import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { api, data } from "../api/client";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { ComplianceTable } from "./ComplianceTable";
import { percent } from "./percent";
import { WorstRuns } from "./WorstRuns";

const WEEKS = [4, 8, 13] as const;

/** How well SLAs are kept: per pipeline and week, the margins, and the latest runs. */
export function SlaPage() {
  const { weeks = 8 } = useSearch({ from: "/sla" });
  const navigate = useNavigate();
  const stats = useQuery({
    queryKey: ["sla", weeks],
    queryFn: async ({ signal }) => data(await api.GET("/api/v1/stats/sla", { params: { query: { weeks } }, signal })),
  });
  const choose = (next: number) => {
    void navigate({ to: "/sla", search: (before) => ({ ...before, weeks: next === 8 ? undefined : next }) });
  };
  return (
    <article className="page">
      <h1>
        SLA{" "}
        <span className="switch" role="group" aria-label="How many weeks">
          {WEEKS.map((one) => (
            <button key={one} type="button" aria-pressed={weeks === one} onClick={() => choose(one)}>
              {one} weeks
            </button>
          ))}
        </span>
      </h1>
      {stats.isPending && <Loading what="the SLAs" />}
      {stats.error !== null && stats.data === undefined && <Failure error={stats.error} retry={() => void stats.refetch()} />}
      {stats.data !== undefined && stats.data.runs === 0 && (
        <p className="state muted">No run with an SLA has ended in these weeks.</p>
      )}
      {stats.data !== undefined && stats.data.runs > 0 && (
        <>
          <p>
            <b>{percent(1 - stats.data.late / stats.data.runs)}</b> of {stats.data.runs} runs were in time; {stats.data.late} late.
            {stats.data.truncated && " There were more than are counted at once."}
          </p>
          <WorstRuns runs={stats.data.worst} />
          <ComplianceTable stats={stats.data} />
        </>
      )}
    </article>
  );
}
