import { useState } from "react";

import { ActionButton } from "../actions/ActionButton";
import { CancelDialog } from "../actions/CancelDialog";
import { ReportDialog } from "../actions/ReportDialog";
import { RerunDialog } from "../actions/RerunDialog";
import { SensorDialog } from "../actions/SensorDialog";
import { PipelinePicker } from "../parts/PipelinePicker";
import { DeadLetters } from "./DeadLetters";
import { Tokens } from "./Tokens";
import { WatchdogDialog } from "./WatchdogDialog";

/** Everything that can be done by hand. Each action names its target and effect, and wants a reason. */
export function OperatePage() {
  const [pipeline, setPipeline] = useState<string | undefined>(undefined);
  const [schedule, setSchedule] = useState("");
  const [date, setDate] = useState("");
  const target = { pipeline: pipeline ?? "", schedule: schedule.trim(), date: date.trim() };
  const noPipeline = pipeline === undefined ? "choose a pipeline first" : undefined;
  const noRun = noPipeline ?? (target.schedule === "" || target.date === "" ? "name schedule and period first" : undefined);
  return (
    <article className="page">
      <h1>Operate</h1>
      <section>
        <h2>A run</h2>
        <div className="bar flush">
          <PipelinePicker label="Pipeline" placeholder="choose a pipeline" value={pipeline} onChange={setPipeline} />
          <label className="pick">
            Schedule
            <input className="search" placeholder="cron or stream" value={schedule} onChange={(event) => setSchedule(event.target.value)} />
          </label>
          <label className="pick">
            Period
            <input className="search" placeholder="2026-03-03" value={date} onChange={(event) => setDate(event.target.value)} />
          </label>
        </div>
        <div className="actions">
          <ActionButton scope="sensor:write" disabled={noPipeline} dialog={(close) => <SensorDialog pipeline={target.pipeline} keys={[]} onClose={close} />}>
            Set sensor…
          </ActionButton>
          <ActionButton scope="job:write" disabled={noRun} dialog={(close) => <ReportDialog {...target} onClose={close} />}>
            Report outcome…
          </ActionButton>
          <ActionButton scope="operate" disabled={noRun} dialog={(close) => <RerunDialog {...target} onClose={close} />}>
            Rerun…
          </ActionButton>
          <ActionButton scope="operate" disabled={noRun} dialog={(close) => <CancelDialog {...target} onClose={close} />}>
            Cancel…
          </ActionButton>
        </div>
        {noRun !== undefined && <p className="muted">To act on a run: {noRun}.</p>}
      </section>
      <section>
        <h2>The watchdog</h2>
        <ActionButton scope="operate" everywhere dialog={(close) => <WatchdogDialog onClose={close} />}>
          Run it now…
        </ActionButton>
      </section>
      <DeadLetters />
      <Tokens />
    </article>
  );
}
