import { span } from "../time/spans";
import { useNow } from "../time/useNow";
import { inAllZones } from "../time/zones";
import type { Lane } from "./states";

function words(lane: Lane, now: number): { text: string; at: string | null } {
  const sla = lane.sla ?? null;
  const done = lane.current?.word === "done";
  if (sla === null) return { text: "", at: null };
  if (sla.state === "met") return { text: "met", at: sla.breachAt ?? null };
  if (sla.state === "recovered") return { text: "recovered", at: sla.breachAt ?? null };
  if (done || sla.state === "cancelled" || typeof sla.breachAt !== "string") return { text: "", at: null };
  const left = Date.parse(sla.breachAt) - now;
  return { text: left >= 0 ? `breach in ${span(left)}` : `late by ${span(left)}`, at: sla.breachAt };
}

/** How long is left until the breach, or how late it is. */
export function SlaCell({ lane }: { lane: Lane }) {
  const now = useNow();
  const { text, at } = words(lane, now);
  if (text === "") return null;
  return (
    <time dateTime={at ?? undefined} title={at === null ? undefined : inAllZones(Date.parse(at), lane.timezone)} data-sla={lane.sla?.state}>
      {text}
    </time>
  );
}
