import { Link } from "@tanstack/react-router";

import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { distance } from "../time/spans";
import { useNow } from "../time/useNow";
import { AllIsWell } from "./AllIsWell";
import { nextDue, standsText, worst } from "./headline";
import { reasonOf } from "./reason";
import type { Lane, Overview } from "./states";

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
  return (
    <div className="headline">
      <Worst {...found} />
      <Next lanes={overview.items} />
    </div>
  );
}

function Worst({ lane, more }: { lane: Lane; more: number }) {
  const now = useNow();
  const word = lane.current?.word ?? "";
  const why = reasonOf(lane);
  // What has failed or is held was just said.
  const said = [word === lane.standing ? "" : word, why].filter(Boolean).join(", ");
  return (
    <p>
      <b>
        <Who lane={lane} /> {standsText(lane, now)}
      </b>
      {said !== "" && (
        <>
          {": "}
          <Text>{said}</Text>
        </>
      )}
      .{more > 0 && <span className="muted"> {more === 1 ? "1 more needs" : `${more} more need`} attention.</span>}
    </p>
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
