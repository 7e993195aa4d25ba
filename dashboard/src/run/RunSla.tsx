import type { Schemas } from "../api/client";
import { span } from "../time/spans";
import { useNow } from "../time/useNow";
import { inAllZones } from "../time/zones";

/** How late a run is that is not done, or how long is left until its breach. */
export function RunSla({ run, timezone }: { run: Schemas["RunDetail"]; timezone: string }) {
  const now = useNow();
  const at = run.sla?.breachAt ?? run.sla?.relativeBreachAt;
  const active = run.word === "waiting" || run.word === "running";
  if (!active || typeof at !== "string") return null;
  const left = Date.parse(at) - now;
  return (
    <time dateTime={at} title={inAllZones(Date.parse(at), timezone)} data-word={left < 0 ? "failed" : undefined}>
      {left < 0 ? ` · late by ${span(left)}` : ` · breach in ${span(left)}`}
    </time>
  );
}
