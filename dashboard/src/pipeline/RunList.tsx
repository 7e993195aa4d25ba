import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { Text } from "../parts/Text";

/** Runs, the latest first. */
export function RunList({ runs }: { runs: readonly Schemas["RunSummary"][] }) {
  return (
    <ul className="run-list">
      {runs.map((run) => (
        <li key={`${run.schedule} ${run.date}`}>
          <Link
            to="/pipelines/$pipeline/runs/$schedule/$date"
            params={{ pipeline: run.pipeline, schedule: run.schedule, date: run.date }}
          >
            {run.date}
          </Link>{" "}
          <span data-word={run.word}>{run.word}</span> <Text>{run.message}</Text>
        </li>
      ))}
    </ul>
  );
}
