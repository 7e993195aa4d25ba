// Where nodes and edges go: computed in a worker, since it takes half a second of processor time for 150 nodes.

export interface LayoutRequest {
  nodes: { id: string; width: number; height: number }[];
  edges: { from: string; to: string }[];
}

export interface Placed {
  id: string;
  x: number;
  y: number;
}

export interface Path {
  from: string;
  to: string;
  points: { x: number; y: number }[];
}

export interface Layout {
  width: number;
  height: number;
  nodes: Placed[];
  edges: Path[];
}
