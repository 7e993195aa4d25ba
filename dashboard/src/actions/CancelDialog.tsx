import { actOnRun } from "../api/raw";
import { ActionDialog } from "./ActionDialog";

interface Props {
  pipeline: string;
  schedule: string;
  date: string;
  word: string;
  onClose: () => void;
}

/** End a waiting attempt, or have a running job stopped at its target. */
export function CancelDialog({ pipeline, schedule, date, word, onClose }: Props) {
  const send = async (reason: string) => {
    const answer = await actOnRun(pipeline, schedule, `${date}:cancel`, { reason });
    return typeof answer["outcome"] === "string" ? answer["outcome"] : JSON.stringify(answer);
  };
  return (
    <ActionDialog
      title="Cancel the run"
      target={`${pipeline} / ${schedule} / ${date}`}
      verb="Cancel the run"
      danger
      send={send}
      onClose={onClose}
    >
      <p>
        {word === "running"
          ? "Its job is stopped at its target; the run then counts as cancelled."
          : "The waiting attempt ends; no job is started."}{" "}
        Its SLA timers are cancelled. A sensor write does not open it again; a rerun does.
      </p>
    </ActionDialog>
  );
}
