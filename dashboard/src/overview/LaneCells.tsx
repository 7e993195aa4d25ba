import { Link } from "@tanstack/react-router";

import { useZone } from "../time/zoneContext";
import { cellText } from "./cellText";
import { beginOf } from "./columns";
import type { LaneProps } from "./LaneRow";

/** How many runs share a cell, where the number fits into it; the cell's label says it anyway. */
function shownCount(count: number | undefined, columns: number): number | undefined {
  return count === undefined || count < 10 || columns <= 16 ? count : undefined;
}

/** A cell a column, each a link to what happened in it. One of them can be reached by Tab, the others by arrows. */
export function LaneCells({ lane, columns, focused, onFocusCell }: LaneProps) {
  const zone = useZone(lane.timezone);
  return (
    <div role="presentation" className="track">
      {Array.from(lane.cells, (letter, index) => (
        <div key={index} role="gridcell">
          {letter === "-" ? null : (
            <Link
              to="/pipelines/$pipeline/cell"
              params={{ pipeline: lane.id }}
              search={{ at: new Date(beginOf(columns, index)).toISOString(), bucket: columns.bucket }}
              className="cell"
              data-s={letter}
              data-m={lane.marks[index] === "-" ? undefined : lane.marks[index]}
              data-n={shownCount(lane.multiple[String(index)], columns.count)}
              data-index={index}
              tabIndex={focused === index ? 0 : -1}
              aria-label={cellText(lane, columns, index, zone)}
              onFocus={() => onFocusCell({ id: lane.id, index })}
            />
          )}
        </div>
      ))}
    </div>
  );
}
