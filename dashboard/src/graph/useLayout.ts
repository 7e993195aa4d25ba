import { useEffect, useMemo, useState } from "react";

import type { Schemas } from "../api/client";
import type { Layout, LayoutRequest } from "./layout";
import { partIsGone } from "../shell/upgrade";
import { startWorker } from "./worker";

export const NODE_HEIGHT = 40;

export function nodeWidth(id: string): number {
  return Math.min(Math.max(id.length * 7.2 + 34, 90), 260);
}

/** The places of a graph's nodes; null until they are computed, `failed` when they cannot be. */
export function useLayout(graph: Schemas["Graph"] | undefined): Layout | "failed" | null {
  const [made, setMade] = useState<{ key: string; layout: Layout | "failed" } | null>(null);
  const key = useMemo(() => (graph === undefined ? "" : JSON.stringify(requestOf(graph))), [graph]);
  useEffect(() => {
    if (key === "") return undefined;
    const worker = startWorker();
    worker.onmessage = (message: MessageEvent<Layout>) => setMade({ key, layout: message.data });
    worker.onerror = () => {
      if (!partIsGone()) setMade({ key, layout: "failed" });
    };
    worker.postMessage(JSON.parse(key) as LayoutRequest);
    return () => worker.terminate();
  }, [key]);
  return made !== null && made.key === key ? made.layout : null;
}

function requestOf(graph: Schemas["Graph"]): LayoutRequest {
  return {
    nodes: graph.nodes.map(({ id }) => ({ id, width: nodeWidth(id), height: NODE_HEIGHT })),
    edges: graph.edges.map(({ from, to }) => ({ from, to })),
  };
}
