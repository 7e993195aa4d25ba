import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { api, data } from "../api/client";
import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { PipelinePicker } from "../parts/PipelinePicker";
import { CoverageView } from "./CoverageView";
import { gapsFirst } from "./order";

/** Which unsafe control actions are covered, per pipeline: gaps first, with the YAML that closes them. */
export function HazardsPage() {
  const { pipeline } = useSearch({ from: "/hazards" });
  const navigate = useNavigate();
  const hazards = useQuery({
    queryKey: ["hazards", pipeline ?? ""],
    queryFn: async ({ signal }) =>
      data(
        await api.GET("/api/v1/hazards", {
          params: { query: { limit: 1000, ...(pipeline === undefined ? {} : { pipeline }) } },
          signal,
        }),
      ),
  });
  return (
    <article className="page hazards">
      <h1>Hazards</h1>
      <div className="bar flush">
        <PipelinePicker
          label="Pipeline"
          value={pipeline}
          onChange={(next) => void navigate({ to: "/hazards", search: (before) => ({ ...before, pipeline: next }) })}
        />
        {hazards.data !== undefined && (
          <span>
            <Count of={hazards.data.counts["uncovered"]} word="failed" /> uncovered, <Count of={hazards.data.counts["weak"]} word="waiting" /> weak,{" "}
            <Count of={hazards.data.counts["covered"]} word="done" /> covered
          </span>
        )}
      </div>
      {hazards.isPending && <Loading what="the hazards" />}
      {hazards.error !== null && hazards.data === undefined && <Failure error={hazards.error} retry={() => void hazards.refetch()} />}
      {hazards.data?.items.length === 0 && <p className="state muted">No pipeline has a valid config.</p>}
      {gapsFirst(hazards.data?.items ?? []).map((coverage) => (
        <CoverageView key={coverage.pipeline} coverage={coverage} open={pipeline !== undefined} />
      ))}
    </article>
  );
}

/** A number, coloured unless there are none. */
function Count({ of = 0, word }: { of: number | undefined; word: string }) {
  return <b data-word={of > 0 ? word : undefined}>{of}</b>;
}
