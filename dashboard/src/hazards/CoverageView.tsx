import { Link } from "@tanstack/react-router";

import type { Schemas } from "../api/client";
import { CopyButton } from "../parts/CopyButton";
import { Text } from "../parts/Text";
import { visible } from "../text/visible";
import { count, hazardsInOrder } from "./order";

const WORDS: Record<string, string> = { uncovered: "failed", weak: "waiting", covered: "done" };

/** The hazards of one pipeline. */
export function CoverageView({ coverage, open }: { coverage: Schemas["Coverage"]; open: boolean }) {
  return (
    <details className="coverage" open={open}>
      <summary>
        <b>
          <Text>{coverage.pipeline}</Text>
        </b>{" "}
        <span className="muted">
          {count(coverage, "uncovered")} uncovered, {count(coverage, "weak")} weak, {count(coverage, "covered")} covered
          {coverage.dryRun ? " · dry run" : ""}
        </span>
      </summary>
      <p>
        <Link to="/pipelines/$pipeline" params={{ pipeline: coverage.pipeline }}>
          Look at the pipeline
        </Link>
      </p>
      <ul>
        {hazardsInOrder(coverage).map((hazard) => {
          const { constraints = [], gap = "", suggestion = "" } = hazard as Partial<typeof hazard>;
          return (
            <li key={hazard.hazard}>
              <span data-word={WORDS[hazard.cover]}>{hazard.cover}</span> <b>{hazard.hazard}</b>{" "}
              <span className="muted">{hazard.kind}</span>
              {constraints.length > 0 && (
                <div>
                  <Text>{constraints.join("; ")}</Text>
                </div>
              )}
              {gap !== "" && (
                <div>
                  <Text>{gap}</Text>
                </div>
              )}
              {suggestion !== "" && (
                <div className="suggestion">
                  <pre>{visible(suggestion)}</pre>
                  <CopyButton text={suggestion}>Copy</CopyButton>
                </div>
              )}
            </li>
          );
        })}
      </ul>
    </details>
  );
}
