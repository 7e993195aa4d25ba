import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { PipelinePicker } from "../parts/PipelinePicker";
import { TypedInput } from "../parts/TypedInput";
import { useLiveRun } from "../run/useLiveRun";
import { GraphList } from "./GraphList";
import { GraphPicture } from "./GraphPicture";
import { graphQuery } from "./query";

/** What runs after what, around one pipeline; with a period, how its runs stand. The same as a list. */
export function GraphPage() {
  const { root, depth = 1, date, as = "picture" } = useSearch({ from: "/graph" });
  const navigate = useNavigate();
  const change = (next: object) => {
    void navigate({ to: "/graph", search: (before) => ({ ...before, ...next }) });
  };
  return (
    <article className="page graph-page">
      <h1>Graph</h1>
      <div className="bar flush">
        <PipelinePicker label="Around" placeholder="choose a pipeline" value={root} onChange={(next) => change({ root: next })} />
        <label className="pick">
          Depth
          <select value={depth} onChange={(event) => change({ depth: Number(event.target.value) })}>
            {[1, 2, 3].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label className="pick">
          Period
          <TypedInput label="Period" placeholder="2026-03-03" value={date} onChange={(next) => change({ date: next })} />
        </label>
        <span className="switch" role="group" aria-label="How to show it">
          {(["picture", "list"] as const).map((one) => (
            <button key={one} type="button" aria-pressed={as === one} onClick={() => change({ as: one === "picture" ? undefined : one })}>
              {one}
            </button>
          ))}
        </span>
      </div>
      {root === undefined ? (
        <p className="state muted">Choose a pipeline to see what it runs after, and what runs after it.</p>
      ) : (
        <GraphAround root={root} depth={depth} date={date} as={as} />
      )}
    </article>
  );
}

interface Props {
  root: string;
  depth: number;
  date: string | undefined;
  as: "picture" | "list";
}

function GraphAround({ root, depth, date, as }: Props) {
  const graph = useQuery(graphQuery(root, depth, date));
  useLiveRun(root, [["graph", root]]);
  if (graph.isPending) return <Loading what="the graph" />;
  if (graph.data === undefined) return <Failure error={graph.error} retry={() => void graph.refetch()} />;
  return (
    <>
      {graph.data.leftOut > 0 && (
        <p className="problem">
          {graph.data.leftOut} more do not fit: choose a smaller depth, or a pipeline further down.
        </p>
      )}
      {graph.data.edges.length === 0 && <p className="muted">It runs after nothing, and nothing runs after it.</p>}
      {as === "picture" ? <GraphPicture graph={graph.data} root={root} date={date} /> : <GraphList graph={graph.data} date={date} />}
    </>
  );
}
