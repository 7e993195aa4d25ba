import { useQuery } from "@tanstack/react-query";

import { api, data } from "../api/client";
import { runQuery } from "../run/queries";
import { useLiveRun } from "../run/useLiveRun";
import { ActionDialog } from "./ActionDialog";
import { cancelEffect } from "./cancelEffect";

interface Props {
  pipeline: string;
  schedule: string;
  date: string;
  onClose: () => void;
}

/** End a waiting attempt, or have a running job stopped at its target: what it would do follows the run, live. */
export function CancelDialog({ pipeline, schedule, date, onClose }: Props) {
  const run = useQuery(runQuery({ pipeline, schedule, date }));
  useLiveRun(pipeline, [["run", pipeline, schedule, date]]);
  const send = async (reason: string) => {
    const answer = data(
      await api.POST("/api/v1/pipelines/{pipeline}/runs/{schedule}/{slot}", {
        params: { path: { pipeline, schedule, slot: `${date}:cancel` } },
        body: { claimId: "", reason },
      }),
    );
    return "outcome" in answer ? answer.outcome : JSON.stringify(answer);
  };
  const effect = run.isPending ? null : cancelEffect(run.data?.word ?? null);
  return (
    <ActionDialog
      title="Cancel the run"
      target={`${pipeline} / ${schedule} / ${date}`}
      verb="Cancel the run"
      danger
      ready={effect?.possible ?? false}
      send={send}
      onClose={onClose}
    >
      {run.error !== null && run.data === undefined ? (
        <p className="problem">{run.error.message}</p>
      ) : (
        <p className="effect">{effect?.text ?? "Asking how it stands…"}</p>
      )}
    </ActionDialog>
  );
}
