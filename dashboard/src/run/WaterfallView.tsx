import { useMemo } from "react";

import type { Schemas } from "../api/client";
import { Text } from "../parts/Text";
import { visibleLine } from "../text/visible";
import { span } from "../time/spans";
import { useNow } from "../time/useNow";
import { useZone } from "../time/zoneContext";
import { formatTime } from "../time/zones";
import { axisTicks, labelled, waterfall, type Row } from "./waterfall";

/** How much of the axis a tick's label takes. */
const LABEL = { wide: 0.06, narrow: 0.26 };

/** The run over time. What a bar shows is in its title, and in the table of attempts below. */
export function WaterfallView({ run, timezone }: { run: Schemas["RunDetail"]; timezone: string }) {
  const minute = Math.floor(useNow(5000) / 5000) * 5000;
  const zone = useZone(timezone);
  const narrow = useMemo(() => window.matchMedia("(max-width: 760px)").matches, []);
  const picture = useMemo(() => waterfall(run, minute), [run, minute]);
  const length = picture.to - picture.from;
  const place = (at: number) => `${((at - picture.from) / length) * 100}%`;
  const shown = (at: number) => at >= picture.from && at <= picture.to;
  return (
    <figure className="waterfall" aria-label="The run over time">
      <div className="wf-axis" aria-hidden="true">
        <span />
        <div className="wf-track">
          {labelled(axisTicks(picture.from, picture.to, narrow ? 3 : 7), picture.from, picture.to, LABEL[narrow ? "narrow" : "wide"]).map(({ at, before }) => (
            <span key={at} className="wf-tick" data-before={before || undefined} style={{ left: place(at) }}>
              {formatTime(at, zone, minute)}
            </span>
          ))}
        </div>
      </div>
      {picture.rows.map((row) => (
        <div key={row.id} className="wf-row" data-sub={row.sub || undefined}>
          <span className="wf-label" title={visibleLine(row.label)}>
            <Text>{row.label}</Text>
          </span>
          <div className="wf-track">
            <RowBars row={row} place={place} />
            {picture.lines
              .filter((line) => shown(line.at))
              .map((line) => (
                <span key={line.kind} className="wf-line" data-kind={line.kind} style={{ left: place(line.at) }} />
              ))}
          </div>
        </div>
      ))}
      <figcaption className="wf-legend">
        {picture.lines
          .filter((line) => line.kind !== "now")
          .map((line) => (
            <span key={line.kind} data-kind={line.kind}>
              {line.text} {formatTime(line.at, zone, minute)} (
              {line.at > minute ? `in ${span(line.at - minute)}` : `${span(minute - line.at)} ago`})
            </span>
          ))}
      </figcaption>
    </figure>
  );
}

function RowBars({ row, place }: { row: Row; place: (at: number) => string }) {
  return (
    <>
      {row.bars.map((bar, index) => (
        <span
          key={index}
          className="wf-bar"
          data-kind={bar.kind}
          data-open={bar.open || undefined}
          title={`${visibleLine(bar.text)}, ${span(bar.to - bar.from)}${bar.open ? " so far" : ""}`}
          style={{ left: place(bar.from), right: `calc(100% - ${place(bar.to)})` }}
        />
      ))}
      {row.dots.map((dot, index) => (
        <span key={index} className="wf-dot" data-kind={dot.kind} title={visibleLine(dot.text)} style={{ left: place(dot.at) }} />
      ))}
    </>
  );
}
