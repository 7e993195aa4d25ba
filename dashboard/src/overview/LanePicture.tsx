import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { useZone } from "../time/zoneContext";
import { cellText } from "./cellText";
import { beginOf } from "./columns";
import type { LaneProps } from "./LaneRow";
import { shapesOf } from "./shapes";

const HEIGHT = 16;
const WIDTH = 10;

/** Many columns as one picture: a path a state, and one cell that moves with arrows and pointer. */
export function LanePicture({ lane, columns, focused, onFocusCell }: LaneProps) {
  const zone = useZone(lane.timezone);
  const navigate = useNavigate();
  const [hovered, setHovered] = useState<number | null>(null);
  const shapes = useMemo(() => shapesOf(lane.cells, lane.marks, WIDTH, HEIGHT), [lane.cells, lane.marks]);
  const index = focused ?? hovered ?? columns.count - 1;
  const open = (column: number) => {
    const at = new Date(beginOf(columns, column)).toISOString();
    void navigate({ to: "/pipelines/$pipeline/cell", params: { pipeline: lane.id }, search: { at, bucket: columns.bucket } });
  };
  const columnAt = (event: { clientX: number; currentTarget: Element }) => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (event.clientX - box.left) / Math.max(box.width, 1);
    return Math.max(0, Math.min(Math.floor(part * columns.count), columns.count - 1));
  };
  const label = cellText(lane, columns, index, zone);
  return (
    <div role="gridcell" className="track picture">
      <svg
        viewBox={`0 0 ${columns.count * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        aria-hidden="true"
        onPointerMove={(event) => setHovered(columnAt(event))}
        onPointerLeave={() => setHovered(null)}
        onClick={(event) => open(columnAt(event))}
      >
        {shapes.map(({ name, path }) => (
          <path key={name} className={`shape ${name}`} d={path} />
        ))}
        {(focused ?? hovered) !== null && (
          <rect className="cursor" x={index * WIDTH + 0.5} y={0.5} width={WIDTH - 1} height={HEIGHT - 1} />
        )}
      </svg>
      <button
        type="button"
        className="moving"
        data-index={index}
        tabIndex={focused === null ? -1 : 0}
        aria-label={label}
        title={label}
        onFocus={() => onFocusCell({ id: lane.id, index })}
        onClick={() => open(index)}
      />
    </div>
  );
}
