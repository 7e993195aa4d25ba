import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { History } from "./History";
import { trendQuery } from "./queries";

// The charts, and the library they are drawn with, are loaded when one is shown.
const FinishChart = lazy(() => import("../charts/FinishChart"));
const DurationChart = lazy(() => import("../charts/DurationChart"));

/** How the runs went: a cell a run; when they finished against their deadline; how long their jobs took. */
export function TrendSection({ pipeline, timezone }: { pipeline: string; timezone: string }) {
  const { days = 90 } = useSearch({ from: "/pipelines/$pipeline" });
  const navigate = useNavigate();
  const trend = useQuery(trendQuery(pipeline, days));
  const choose = (next: 30 | 90) => {
    void navigate({ to: ".", search: (before) => ({ ...before, days: next === 90 ? undefined : next }) });
  };
  return (
    <section className="trend">
      <h2>
        History{" "}
        <span className="switch" role="group" aria-label="How many days">
          {([30, 90] as const).map((one) => (
            <button key={one} type="button" aria-pressed={days === one} onClick={() => choose(one)}>
              {one} d
            </button>
          ))}
        </span>
      </h2>
      {trend.isPending && <Loading what="its runs" />}
      {trend.error !== null && trend.data === undefined && <Failure error={trend.error} retry={() => void trend.refetch()} />}
      {trend.data?.items.length === 0 && <p className="muted">It has not run in these days.</p>}
      {trend.data !== undefined && trend.data.items.length > 0 && (
        <>
          <History pipeline={pipeline} runs={trend.data.items} />
          <Suspense fallback={<Loading what="the charts" />}>
            <div className="pair">
              {trend.data.items.some((run) => typeof run.marginSeconds === "number") && (
                <FinishChart trend={trend.data} timezone={timezone} />
              )}
              <DurationChart trend={trend.data} timezone={timezone} />
            </div>
          </Suspense>
        </>
      )}
    </section>
  );
}
