import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";

import { Failure } from "../parts/Failure";
import { Loading } from "../parts/Loading";
import { Text } from "../parts/Text";
import { NextLines } from "./NextLines";
import { runQuery, whyQuery } from "./queries";
import { RunActions } from "./RunActions";
import { RunNeighbours } from "./RunNeighbours";
import { RunSla } from "./RunSla";
import { RunTabs } from "./RunTabs";
import { useLiveRun } from "./useLiveRun";
import { WaterfallView } from "./WaterfallView";
import { WhySections } from "./WhySections";

const WITHOUT_RUN = new Set(["dry run", "excluded", "missed", "not opened", "invalid"]);

/** One run: why it stands as it does, first; then its course, and everything that hangs on it. */
export function RunPage() {
  const key = useParams({ from: "/pipelines/$pipeline/runs/$schedule/$date" });
  const [shown, setShown] = useState("");
  const why = useQuery(whyQuery(key));
  // A period that never ran has no detail to ask for.
  const ran = why.data !== undefined && !WITHOUT_RUN.has(why.data.state);
  const detail = useQuery({ ...runQuery(key), enabled: ran });
  useLiveRun(key.pipeline, [["run", key.pipeline, key.schedule, key.date]]);
  const error = why.error ?? detail.error;
  if (error !== null && why.data === undefined) {
    return <Failure error={error} retry={() => void Promise.all([why.refetch(), detail.refetch()])} />;
  }
  // Once shown, the page stays: the first attempt of a period must not take away the dialog that asked for it.
  const whole = why.data !== undefined && !(ran && detail.isPending);
  const name = [key.pipeline, key.schedule, key.date].join(" ");
  if (whole && shown !== name) setShown(name);
  if (why.data === undefined || (!whole && shown !== name)) return <Loading what="the run" />;
  const run = detail.data ?? null;
  return (
    <article className="run page">
      <header className="run-head">
        <h1>
          <Link to="/pipelines/$pipeline" params={{ pipeline: key.pipeline }}>
            <Text>{key.pipeline}</Text>
          </Link>{" "}
          <span className="muted">/</span> <Text>{key.schedule}</Text> <span className="muted">/</span> <Text>{key.date}</Text>
        </h1>
        <p className="run-state">
          <span data-word={why.data.state}>{why.data.state}</span>
          {run !== null && run.attempt > 1 && (
            <span className="muted">
              {" "}
              · attempt {run.attempt} ({run.source})
            </span>
          )}
          {run !== null && <RunSla run={run} timezone={why.data.timezone} />}
        </p>
        <RunActions runKey={key} run={run} why={why.data} />
      </header>
      <p className="verdict">
        <Text>{why.data.verdict}</Text>
      </p>
      <NextLines why={why.data} />
      <p className="advice">
        <Text>{why.data.advice}</Text>
      </p>
      {run !== null && <WaterfallView run={run} timezone={why.data.timezone} />}
      {run !== null ? <RunTabs run={run} timezone={why.data.timezone} /> : <WhySections why={why.data} />}
      <RunNeighbours pipeline={key.pipeline} date={key.date} />
    </article>
  );
}
