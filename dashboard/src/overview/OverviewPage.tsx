import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useRef } from "react";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import type { OverviewSearch } from "../url/search";
import { Counters } from "./Counters";
import { Filters } from "./Filters";
import { LaneGrid } from "./LaneGrid";
import { NothingYet } from "./NothingYet";
import { overviewQuery, type Question } from "./query";
import { useHourly } from "./useHourly";
import { useLiveLanes } from "./useLiveLanes";

/** What is late, why, and what happens next: every pipeline as a lane. */
export function OverviewPage() {
  const search = useSearch({ from: "/" });
  const navigate = useNavigate();
  const question: Question = { span: search.span ?? "24h", owner: search.owner, state: search.state, q: search.q };
  const options = overviewQuery(question);
  const overview = useQuery(options);
  const onScreen = useRef<readonly string[]>([]);
  useLiveLanes(options.queryKey, () => onScreen.current);
  useHourly(options.queryKey);
  const change = (next: Partial<Record<keyof OverviewSearch, unknown>>, replace = false) => {
    void navigate({ to: "/", replace, search: (before) => ({ ...before, ...next }) as OverviewSearch });
  };
  const filtered = search.owner !== undefined || search.state !== undefined || search.q !== undefined;
  return (
    <div className="overview">
      <h1 className="spoken">Overview</h1>
      <div className="bar">
        <Counters counts={overview.data?.counts} chosen={search.state ?? []} onChoose={(state) => change({ state })} />
        <Filters search={search} owners={overview.data?.owners ?? []} onChange={change} />
      </div>
      {overview.isPending && <Loading what="the pipelines" />}
      {overview.error !== null && overview.data === undefined && (
        <Failure error={overview.error} retry={() => void overview.refetch()} />
      )}
      {overview.data !== undefined &&
        (overview.data.items.length === 0 ? (
          <NothingYet filtered={filtered} onClear={() => change({ owner: undefined, state: undefined, q: undefined })} />
        ) : (
          <LaneGrid
            overview={overview.data}
            group={search.group ?? "none"}
            selected={search.sel}
            onSelect={(sel) => change({ sel }, true)}
            onScreen={onScreen}
            filtered={filtered}
          />
        ))}
    </div>
  );
}
