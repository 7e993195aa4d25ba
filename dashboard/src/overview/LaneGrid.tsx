import { useNavigate } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type RefObject } from "react";

import { Text } from "../parts/Text";
import type { Overview } from "./states";
import { columnsOf } from "./reducer";
import { beside, nearest } from "./cellMoves";
import { ColumnHeads } from "./ColumnHeads";
import { Headline } from "./Headline";
import { Legend } from "./Legend";
import { entries, type Group } from "./order";
import { LaneRow, type CellPlace } from "./LaneRow";
import { useOrder } from "./useOrder";

interface Props {
  overview: Overview;
  group: Group;
  selected: string | undefined;
  onSelect: (id: string | undefined) => void;
  onScreen: RefObject<readonly string[]>;
  filtered: boolean;
}

const ROW = 30;
const NARROW_ROW = 62;

/** The lanes, those on screen only. Arrows move between cells, j and k between lanes. */
export function LaneGrid({ overview, group, selected, onSelect, onScreen, filtered }: Props) {
  const { bucket, from, to } = overview;
  const columns = useMemo(() => columnsOf({ bucket, from, to }), [bucket, from, to]);
  const { places, moved, resort, pointer } = useOrder(overview.items, group);
  const rows = useMemo(() => entries(overview.items, places), [overview.items, places]);
  const scroller = useRef<HTMLDivElement>(null);
  const navigate = useNavigate();
  const [cell, setCell] = useState<CellPlace | null>(null);
  const narrow = useMemo(() => window.matchMedia("(max-width: 760px)").matches, []);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (rows[index]?.kind === "heading" ? ROW : narrow ? NARROW_ROW : ROW),
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 4,
  });
  const shown = virtualizer.getVirtualItems();
  useEffect(() => {
    onScreen.current = shown.flatMap((item) => {
      const row = rows[item.index];
      return row?.kind === "lane" ? [row.id] : [];
    });
  });
  const lanes = useMemo(() => rows.flatMap((row, index) => (row.kind === "lane" ? [{ ...row, index }] : [])), [rows]);

  const focusLane = (position: number, index?: number) => {
    const next = lanes[Math.max(0, Math.min(position, lanes.length - 1))];
    if (next === undefined) return;
    virtualizer.scrollToIndex(next.index, { align: "auto" });
    onSelect(next.id);
    const column = index === undefined ? null : nearest(next.lane.cells, index);
    setCell(column === null ? null : { id: next.id, index: column });
    requestAnimationFrame(() => {
      const row = scroller.current?.querySelector(`[data-lane="${CSS.escape(next.id)}"]`);
      const target = column === null ? row?.querySelector("a.name") : row?.querySelector(`[data-index="${column}"]`);
      if (target instanceof HTMLElement || target instanceof SVGElement) target.focus();
    });
  };
  const keys = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const position = lanes.findIndex((lane) => lane.id === (cell?.id ?? selected));
    const inCell = (event.target as HTMLElement).closest("[data-index]");
    const index = inCell instanceof HTMLElement || inCell instanceof SVGElement ? Number(inCell.dataset["index"]) : null;
    const last = columns.count - 1;
    const cells = lanes[position]?.lane.cells ?? "";
    const right = beside(cells, index ?? -1, 1);
    const left = index === null ? null : beside(cells, index, -1);
    const moves: Record<string, () => void> = {
      ArrowDown: () => focusLane(position + 1, index ?? undefined),
      ArrowUp: () => focusLane(position - 1, index ?? undefined),
      ArrowRight: () => focusLane(position, right ?? index ?? undefined),
      ArrowLeft: () => focusLane(position, left ?? undefined),
      Home: () => focusLane(position, 0),
      End: () => focusLane(position, last),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
  useEffect(() => {
    const byLetter = (event: globalThis.KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      const typing = target?.closest("input, textarea, select, dialog, [role=menu]") !== null && target !== null;
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const position = lanes.findIndex((lane) => lane.id === selected);
      if (event.key === "j") focusLane(position + 1);
      if (event.key === "k") focusLane(Math.max(position - 1, 0));
      const lane = lanes[position]?.lane;
      if (event.key === "w" && lane?.current !== null && lane?.current !== undefined && lane.current.date !== "") {
        const { schedule, date } = lane.current;
        void navigate({ to: "/pipelines/$pipeline/runs/$schedule/$date", params: { pipeline: lane.id, schedule, date } });
      }
    };
    window.addEventListener("keydown", byLetter);
    return () => window.removeEventListener("keydown", byLetter);
  });

  return (
    <div className="lanes" data-columns={columns.count}>
      {!filtered && <Headline overview={overview} />}
      {moved > 0 && (
        <button type="button" className="resort" onClick={resort}>
          {moved} moved, re-sort
        </button>
      )}
      <div
        ref={scroller}
        className="scroller"
        role="grid"
        aria-label="Pipelines"
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.count + 4}
        onKeyDown={keys}
        {...pointer}
      >
        <ColumnHeads columns={columns} at={Date.parse(overview.at)} />
        <div className="rows" role="rowgroup" ref={(element) => {
          if (element !== null) element.style.height = `${virtualizer.getTotalSize()}px`;
        }}>
          {shown.map((item) => {
            const row = rows[item.index];
            if (row === undefined) return null;
            return (
              <div
                key={item.key}
                role="row"
                aria-rowindex={item.index + 2}
                className={row.kind === "heading" ? "row heading" : "row lane"}
                data-lane={row.kind === "lane" ? row.id : undefined}
                data-index-row={item.index}
                data-selected={row.kind === "lane" && row.id === selected ? true : undefined}
                ref={(element) => {
                  if (element !== null) element.style.transform = `translateY(${item.start}px)`;
                }}
              >
                {row.kind === "heading" ? (
                  <div role="gridcell" aria-colspan={columns.count + 4}>
                    <h2>
                      <Text>{row.title}</Text> <span className="muted">({row.count})</span>
                    </h2>
                  </div>
                ) : (
                  <LaneRow
                    lane={row.lane}
                    columns={columns}
                    focused={cell?.id === row.id ? cell.index : null}
                    onFocusCell={setCell}
                  />
                )}
              </div>
            );
          })}
        </div>
      </div>
      <Legend lanes={overview.items} />
    </div>
  );
}
