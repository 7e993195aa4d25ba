import { Link } from "@tanstack/react-router";
import { memo } from "react";

import { Text } from "../parts/Text";
import { visibleLine } from "../text/visible";
import type { Columns } from "./columns";
import { MOST_CELLS } from "./columns";
import { LaneCells } from "./LaneCells";
import { LanePicture } from "./LanePicture";
import { NextRun } from "./NextRun";
import { reasonOf } from "./reason";
import { SlaCell } from "./SlaCell";
import { STANDING_WORDS, type Lane } from "./states";

/** A cell, by its pipeline and its column. */
export interface CellPlace {
  id: string;
  index: number;
}

/** The same objects as long as nothing changes, so that only lanes of which something was heard are drawn again. */
export interface LaneProps {
  lane: Lane;
  columns: Columns;
  focused: number | null;
  /** Not a function that is made anew: each cell keeps the one it was drawn with, and all that such a function refers to. */
  onFocusCell: (place: CellPlace) => void;
}

/** What is over, and was not the last thing that happened, is told with its period. */
const PAST = new Set(["done", "failed", "held", "missed"]);

/** One pipeline. */
export const LaneRow = memo(function LaneRow({ lane, columns, focused, onFocusCell }: LaneProps) {
  const current = lane.current ?? null;
  const word = current?.word ?? STANDING_WORDS[lane.standing];
  const why = word === "done" ? "" : reasonOf(lane);
  return (
    <>
      <div role="rowheader" className="who">
        <Link to="/pipelines/$pipeline" params={{ pipeline: lane.id }} className="name" title={visibleLine(lane.owner)}>
          <Text>{lane.id}</Text>
        </Link>
      </div>
      <div role="gridcell" className="what">
        <span className="word" data-word={word}>
          {word}
        </span>
        {current !== null && PAST.has(word) && <span className="of">{current.date}</span>}
        {why !== "" && (
          <span className="why" title={visibleLine(why)}>
            <Text>{why}</Text>
          </span>
        )}
      </div>
      {columns.count <= MOST_CELLS ? (
        <LaneCells lane={lane} columns={columns} focused={focused} onFocusCell={onFocusCell} />
      ) : (
        <LanePicture lane={lane} columns={columns} focused={focused} onFocusCell={onFocusCell} />
      )}
      <div role="gridcell" className="sla">
        <SlaCell lane={lane} />
      </div>
      <div role="gridcell" className="next">
        <NextRun lane={lane} />
      </div>
    </>
  );
});
