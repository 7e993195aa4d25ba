import { distance } from "../time/spans";
import { useNow } from "../time/useNow";
import { inAllZones } from "../time/zones";

/** How far away an instant is, counted by the controller's clock; `ahead`: it may be yet to come. */
export function Ago({ at, zone, ahead = false }: { at: string; zone?: string | undefined; ahead?: boolean }) {
  const instant = Date.parse(at);
  // What has happened is never ahead, even where the page's idea of the time is a moment behind.
  const real = useNow();
  const now = ahead ? real : Math.max(real, instant);
  return (
    <time dateTime={at} title={inAllZones(instant, zone)}>
      {distance(instant, now)}
    </time>
  );
}
