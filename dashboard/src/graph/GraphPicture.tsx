import { useNavigate } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { Loading } from "../parts/Loading";
import { visibleLine } from "../text/visible";
import { NODE_HEIGHT, nodeWidth, useLayout } from "./useLayout";

interface Props {
  graph: Schemas["Graph"];
  root: string;
  date: string | undefined;
}

/** The graph as a picture, from left to right. Each node is a link. */
export function GraphPicture({ graph, root, date }: Props) {
  const layout = useLayout(graph);
  const navigate = useNavigate();
  if (layout === null) return <Loading what="the picture" />;
  if (layout === "failed") return <p className="state muted">The picture cannot be drawn here. The list shows the same.</p>;
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const edges = new Map(graph.edges.map((edge) => [`${edge.from} ${edge.to}`, edge]));
  return (
    <div className="scroll-x graph-picture" tabIndex={0} role="region" aria-label="The graph">
      <svg width={layout.width} height={layout.height} role="group" aria-label={`What runs around ${root}`}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" className="arrow" />
          </marker>
        </defs>
        {layout.edges.map((edge) => {
          const known = edges.get(`${edge.from} ${edge.to}`);
          const path = edge.points.map((point, index) => `${index === 0 ? "M" : "L"}${point.x} ${point.y}`).join("");
          return (
            <path key={`${edge.from} ${edge.to}`} d={path} className="edge" data-marker={known?.marker ?? undefined} markerEnd="url(#arrow)">
              <title>{`${known?.require ?? ""}${known?.marker === undefined || known.marker === null ? "" : `, marker ${known.marker}`}`}</title>
            </path>
          );
        })}
        {layout.nodes.map(({ id, x, y }) => {
          const node = nodes.get(id);
          const width = nodeWidth(id);
          const to = node?.word !== null && node?.word !== undefined && date !== undefined ? `/pipelines/${encodeURIComponent(id)}/runs/${encodeURIComponent(node.schedule)}/${encodeURIComponent(date)}` : `/pipelines/${encodeURIComponent(id)}`;
          return (
            <a
              key={id}
              href={to}
              className="node"
              data-root={id === root || undefined}
              data-word={node?.word ?? undefined}
              onClick={(event) => {
                event.preventDefault();
                void navigate({ href: to });
              }}
            >
              <rect x={x - width / 2} y={y - NODE_HEIGHT / 2} width={width} height={NODE_HEIGHT} rx={5} />
              <text x={x - width / 2 + 10} y={y - 3}>
                {visibleLine(id).slice(0, 34)}
              </text>
              <text x={x - width / 2 + 10} y={y + 13} className="small">
                {node?.hidden === true ? "beyond your token" : node?.known === false ? "not there" : (node?.word ?? (date === undefined ? node?.owner : "not opened")) ?? ""}
                {node?.sla === null || node?.sla === undefined ? "" : ` · ${node.sla}`}
              </text>
            </a>
          );
        })}
      </svg>
    </div>
  );
}
