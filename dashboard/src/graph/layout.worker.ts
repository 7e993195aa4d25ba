import { graphlib, layout } from "@dagrejs/dagre";

import type { Layout, LayoutRequest, Path } from "./layout";

self.onmessage = (message: MessageEvent<LayoutRequest>) => {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 70, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of message.data.nodes) graph.setNode(id, { width, height });
  for (const { from, to } of message.data.edges) graph.setEdge(from, to);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const answer: Layout = {
    width,
    height,
    nodes: graph.nodes().map((id) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return { id, x, y };
    }),
    edges: graph.edges().map(({ v, w }) => ({ from: v, to: w, points: (graph.edge(v, w) as Partial<Path>).points ?? [] })),
  };
  self.postMessage(answer);
};
