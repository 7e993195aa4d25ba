import { useMemo } from "react";
import type uPlot from "uplot";

import type { Schemas } from "../api/client";
import { axes, colours, duration } from "./axes";
import Plot from "./Plot";

/** How long its jobs take: a dot a run, retried ones marked, the middle and the long ones as lines. */
export default function DurationChart({ trend }: { trend: Schemas["Trend"]; timezone: string }) {
  const { options, data, label } = useMemo(() => {
    const runs = trend.items.filter((run) => typeof run.durationSeconds === "number");
    const at = runs.map((run) => Date.parse(run.triggeredAt ?? run.openedAt) / 1000);
    const colour = colours();
    const dots = (stroke: string): uPlot.Series => ({ stroke, fill: stroke, paths: () => null, points: { show: true, size: 5, fill: stroke } });
    const line = (stroke: string): uPlot.Series => ({ stroke, width: 1.5, points: { show: false } });
    const flat = (value: number | null | undefined) => at.map(() => value ?? null);
    const { p50, p95 } = trend.duration;
    const made: Omit<uPlot.Options, "width" | "height"> = {
      scales: { x: { time: true }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1)] } },
      axes: axes((seconds) => duration(seconds)),
      legend: { show: false },
      cursor: { show: false },
      series: [{}, dots(colour.accent), dots(colour.warned), line(colour.accent), line(colour.warned)],
    };
    const once = runs.map((run) => (run.attempts <= 1 ? (run.durationSeconds ?? null) : null));
    const retried = runs.map((run) => (run.attempts > 1 ? (run.durationSeconds ?? null) : null));
    const count = runs.filter((run) => run.attempts > 1).length;
    const words =
      typeof p50 === "number"
        ? `Half of ${runs.length} jobs take at most ${duration(p50)}, 95 of 100 at most ${duration(p95 ?? p50)}; ${count} runs were retried.`
        : "No job has ended yet.";
    return { options: made, data: [at, once, retried, flat(p50), flat(p95)] as uPlot.AlignedData, label: words };
  }, [trend]);
  return (
    <figure className="chart">
      <h3>Duration</h3>
      <Plot options={options} data={data} height={190} label={label} />
      <figcaption className="muted">{label}</figcaption>
    </figure>
  );
}
