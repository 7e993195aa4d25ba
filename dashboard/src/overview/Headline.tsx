import { Link } from "@tanstack/react-router";

import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { distance } from "../time/spans";
import { useNow } from "../time/useNow";
import { AllIsWell } from "./AllIsWell";
import { nextDue, worst } from "./headline";
import { SlaCell } from "./SlaCell";
import { STANDING_WORDS, type Lane, type Overview } from "./states";

/** What is late, why, and what happens next, in a sentence. */
export function Headline({ overview }: { overview: Overview }) {
  const found = worst(overview.items);
  if (found === null) {
    return (
      <div className="headline">
        <AllIsWell overview={overview} />
        <Next lanes={overview.items} />
      </div>
    );
  }
  const { lane, more } = found;
  const summary = lane.current?.summary ?? lane.errors[0] ?? "";
  return (
    <div className="headline">
      <p>
        <b>
          <Who lane={lane} /> is {STANDING_WORDS[lane.standing]}
        </b>
        {lane.current !== null && lane.current !== undefined && `: ${lane.current.word}`}
        {summary !== "" && (
          <>
            {", "}
            <Text>{summary}</Text>
          </>
        )}
        . <SlaCell lane={lane} />
        {more > 0 && <span className="muted"> And {more} more need attention.</span>}
      </p>
      <Next lanes={overview.items} />
    </div>
  );
}

function Who({ lane }: { lane: Lane }) {
  const run = lane.current ?? null;
  if (run === null || run.date === "") {
    return (
      <Link to="/pipelines/$pipeline" params={{ pipeline: lane.id }}>
        <Text>{lane.id}</Text>
      </Link>
    );
  }
  return (
    <Link to="/pipelines/$pipeline/runs/$schedule/$date" params={{ pipeline: lane.id, schedule: run.schedule, date: run.date }}>
      <Text>{`${lane.id} for ${run.date}`}</Text>
    </Link>
  );
}

function Next({ lanes }: { lanes: readonly Lane[] }) {
  const now = useNow();
  const due = nextDue(lanes, now);
  if (due === null) return null;
  return (
    <p className="muted">
      Next: <Text>{due.date === null ? due.lane.id : `${due.lane.id} for ${due.date}`}</Text> {due.what} <Time at={due.at} zone={due.lane.timezone} near /> ({distance(Date.parse(due.at), now)}).
    </p>
  );
}
