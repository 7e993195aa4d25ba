// What cancelling a run would do, by how the run stands.

export interface CancelEffect {
  possible: boolean;
  text: string;
}

const AFTERWARDS = "Its SLA timers are cancelled. A sensor write does not open it again; a rerun does.";

/** `word`: how the run stands; null when there is none. */
export function cancelEffect(word: string | null): CancelEffect {
  switch (word) {
    case null:
      return { possible: false, text: "This period has never run: there is nothing to cancel." };
    case "running":
      return { possible: true, text: `It is running: its job is stopped at its target, and the run then counts as cancelled. ${AFTERWARDS}` };
    case "waiting":
      return { possible: true, text: `It is waiting: the attempt ends, and no job is started. ${AFTERWARDS}` };
    default:
      return { possible: false, text: `It is ${word}: there is nothing to cancel.` };
  }
}
