import { distance } from "../time/spans";
import { useNow } from "../time/useNow";
import { inAllZones } from "../time/zones";

/** How far away an instant is, counted by the controller's clock. */
export function Ago({ at, zone }: { at: string; zone?: string | undefined }) {
  const now = useNow();
  const instant = Date.parse(at);
  return (
    <time dateTime={at} title={inAllZones(instant, zone)}>
      {distance(instant, now)}
    </time>
  );
}
