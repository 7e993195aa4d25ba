import { distance } from "../time/spans";
import { useNow } from "../time/useNow";
import { inAllZones } from "../time/zones";

/** How far away an instant is, counted by the controller's clock. */
export function Ago({ at, zone }: { at: string; zone?: string | undefined }) {
  const instant = Date.parse(at);
  // What has happened is never ahead, even where the page's idea of the time is a moment behind.
  const now = Math.max(useNow(), instant);
  return (
    <time dateTime={at} title={inAllZones(instant, zone)}>
      {distance(instant, now)}
    </time>
  );
}
