import { Text } from "../parts/Text";
import { Time } from "../parts/Time";
import { visibleLine } from "../text/visible";
import type { Lane } from "./states";

/** When the next run opens, or what opens it. */
export function NextRun({ lane }: { lane: Lane }) {
  const next = lane.nextRun ?? null;
  if (next === null) return null;
  if (typeof next.startAt === "string") return <Time at={next.startAt} zone={lane.timezone} near />;
  return (
    <span className="muted" title={visibleLine(next.opens)}>
      <Text>{next.opens}</Text>
    </span>
  );
}
