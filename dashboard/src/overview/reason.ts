import type { Lane } from "./states";

/**
 * Why a lane's run stands as it does, in the controller's words, without the pipeline and period that stand beside it;
 * of a lane without a run, what is wrong with its config.
 */
export function reasonOf(lane: Lane): string {
  if (lane.current === null || lane.current === undefined) return lane.errors.join("; ");
  const { summary, attempt, word, date } = lane.current;
  const tries = attempt > 1 && word !== "done" ? `attempt ${attempt}: ` : "";
  return `${tries}${summary.replaceAll(` of ${lane.id} for ${date}`, "")}`;
}
