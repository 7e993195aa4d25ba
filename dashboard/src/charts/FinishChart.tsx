import { useMemo } from "react";
import type uPlot from "uplot";

import type { Schemas } from "../api/client";
import { axes, colours, margin, shortMargin } from "./axes";
import Plot from "./Plot";

/** When runs finished against their deadline: a dot a run, the band most of them lie in, the deadline itself. */
export default function FinishChart({ trend }: { trend: Schemas["Trend"]; timezone: string }) {
  const { options, data, label } = useMemo(() => {
    const runs = trend.items.filter((run) => typeof run.marginSeconds === "number");
    const at = runs.map((run) => Date.parse(run.breachAt ?? run.openedAt) / 1000);
    const margins = runs.map((run) => run.marginSeconds ?? 0);
    const flat = (value: number | null | undefined) => at.map(() => value ?? null);
    const { p10, p50, p90 } = trend.finish;
    const colour = colours();
    const dots = (stroke: string): uPlot.Series => ({ stroke, fill: stroke, paths: () => null, points: { show: true, size: 5, fill: stroke } });
    const none: uPlot.Series = { stroke: "transparent", points: { show: false } };
    const made: Omit<uPlot.Options, "width" | "height"> = {
      scales: { x: { time: true }, y: { dir: -1 } },
      axes: axes(shortMargin),
      legend: { show: false },
      cursor: { show: false },
      bands: [{ series: [1, 2], fill: colour.band }],
      // The band first: dots are drawn upon it.
      series: [
        {},
        none,
        none,
        { stroke: colour.failed, width: 1.5, points: { show: false } },
        dots(colour.done),
        dots(colour.failed),
      ],
    };
    const early = margins.map((value) => (value >= 0 ? value : null));
    const late = margins.map((value) => (value < 0 ? value : null));
    const count = late.filter((value) => value !== null).length;
    const words =
      typeof p50 === "number"
        ? `Half of ${runs.length} runs are done ${margin(p50)}; nine of ten at least ${margin(p10 ?? p50)}; ${count} were late.`
        : "No run has finished yet.";
    return { options: made, data: [at, flat(p90), flat(p10), flat(0), early, late] as uPlot.AlignedData, label: words };
  }, [trend]);
  return (
    <figure className="chart">
      <h3>Finish against deadline</h3>
      <Plot options={options} data={data} height={190} label={label} />
      <figcaption className="muted">{label}</figcaption>
    </figure>
  );
}
