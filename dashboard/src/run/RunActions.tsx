import { ActionButton } from "../actions/ActionButton";
import { CancelDialog } from "../actions/CancelDialog";
import { ReportDialog } from "../actions/ReportDialog";
import { RerunDialog } from "../actions/RerunDialog";
import type { Schemas } from "../api/client";
import { CopyButton } from "../parts/CopyButton";
import type { RunKey } from "./queries";
import { whyText } from "./whyText";

interface Props {
  runKey: RunKey;
  run: Schemas["RunDetail"] | null;
  why: Schemas["Explanation"];
}

/** What can be done about a run. */
export function RunActions({ runKey, run, why }: Props) {
  const active = run !== null && (run.word === "waiting" || run.word === "running");
  return (
    <div className="actions">
      <ActionButton scope="operate" dialog={(close) => <RerunDialog {...runKey} onClose={close} />}>
        Rerun…
      </ActionButton>
      <ActionButton
        scope="job:write"
        disabled={run === null ? "it has never run" : undefined}
        dialog={(close) => <ReportDialog {...runKey} onClose={close} />}
      >
        Report…
      </ActionButton>
      {active && (
        <ActionButton scope="operate" dialog={(close) => <CancelDialog {...runKey} onClose={close} />}>
          Cancel…
        </ActionButton>
      )}
      <CopyButton text={whyText(why)}>Copy why</CopyButton>
    </div>
  );
}
