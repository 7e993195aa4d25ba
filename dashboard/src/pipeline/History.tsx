import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { LETTER_OF } from "../overview/states";
import { byDay } from "./days";

type TrendRun = Schemas["TrendRun"];

function label(run: TrendRun): string {
  const tries = run.attempts > 1 ? `, ${run.attempts} attempts` : "";
  const sla = typeof run.sla === "string" ? `, SLA ${run.sla}` : "";
  return `${run.date}: ${run.word}${tries}${sla}`;
}

function mark(run: TrendRun): string | undefined {
  if (run.sla === "breached" || (run.sla === "recovered" && (run.marginSeconds ?? 0) < 0)) return "b";
  return run.sla === "recovered" ? "w" : undefined;
}

/** A cell a run, a column a day. */
export function History({ pipeline, runs }: { pipeline: string; runs: readonly TrendRun[] }) {
  const days = byDay(runs);
  const tall = Math.max(...days.map((day) => day.runs.length)) > 1;
  return (
    <div className="history" data-tall={tall || undefined} role="list" aria-label="Runs by day">
      {days.map((day) => (
        <div key={day.date} role="listitem" className="day" title={day.date}>
          {day.runs.map((run) => (
            <Link
              key={`${run.schedule} ${run.date}`}
              to="/pipelines/$pipeline/runs/$schedule/$date"
              params={{ pipeline, schedule: run.schedule, date: run.date }}
              className="cell"
              data-s={LETTER_OF[run.word]}
              data-m={mark(run)}
              aria-label={label(run)}
              title={label(run)}
            />
          ))}
        </div>
      ))}
    </div>
  );
}
