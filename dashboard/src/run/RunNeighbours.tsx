import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { graphQuery } from "../graph/query";
import { Text } from "../parts/Text";

/** The runs of the same period before and after this one in the cascade. */
export function RunNeighbours({ pipeline, date }: { pipeline: string; date: string }) {
  const graph = useQuery(graphQuery(pipeline, 1, date));
  const edges = graph.data?.edges ?? [];
  const nodes = new Map(graph.data?.nodes.map((node) => [node.id, node]));
  if (edges.length === 0) return null;
  return (
    <section className="neighbours">
      <h2>In the cascade</h2>
      <ul>
        {edges.map((edge) => {
          const before = edge.to === pipeline;
          const other = nodes.get(before ? edge.from : edge.to);
          if (other === undefined) return null;
          return (
            <li key={`${edge.from} ${edge.to}`}>
              {before ? "after" : "before"}{" "}
              {other.known && !other.hidden ? (
                <Link
                  to="/pipelines/$pipeline/runs/$schedule/$date"
                  params={{ pipeline: other.id, schedule: other.schedule || "cron", date }}
                >
                  <Text>{other.id}</Text>
                </Link>
              ) : (
                <Text>{other.id}</Text>
              )}{" "}
              <span data-word={other.word ?? undefined}>{other.hidden ? "beyond your token" : (other.word ?? "not opened")}</span>
              <span className="muted">
                {" "}
                · {edge.require}
                {edge.marker === null || edge.marker === undefined ? "" : `, marker ${edge.marker}`}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
