import { clock } from "../time/clock";
import { useZone } from "../time/zoneContext";
import { formatNear, formatTime, inAllZones } from "../time/zones";

interface Props {
  at: string;
  zone: string | undefined;
  seconds?: boolean;
  near?: boolean;
}

/** An instant, with its zone; all three zones on hover, the instant itself for machines. */
export function Time({ at, zone, seconds = false, near = false }: Props) {
  const instant = Date.parse(at);
  const shown = useZone(zone);
  if (Number.isNaN(instant)) return null;
  return (
    <time dateTime={at} title={inAllZones(instant, zone)}>
      {near ? formatNear(instant, shown, clock.now()) : formatTime(instant, shown, clock.now(), seconds)}
    </time>
  );
}
