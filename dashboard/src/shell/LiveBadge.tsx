import { useQuery } from "@tanstack/react-query";

import { controllerQuery } from "../api/controller";
import { useMay } from "../api/session";
import { Ago } from "../parts/Ago";
import { useLive } from "../parts/useLive";

const WORDS = { connecting: "connecting", live: "live", lost: "not live" } as const;

/** How the page knows what it shows: the stream, and the watchdog's last pass. */
export function LiveBadge() {
  const { phase } = useLive();
  const reads = useMay("read");
  const controller = useQuery({ ...controllerQuery, enabled: reads });
  const last = controller.data?.watchdog.lastAt;
  const failed = controller.data?.watchdog.failedChecks.length ?? 0;
  const troubled = (controller.data?.troubles.length ?? 0) > 0 || failed > 0;
  if (!reads) return <span className="live muted">not live: needs the scope read</span>;
  return (
    <span className="live" data-phase={phase}>
      <span className="dot" aria-hidden="true" />
      {WORDS[phase]}
      {typeof last === "string" && (
        <span className="muted">
          {" · watchdog "}
          <Ago at={last} />
        </span>
      )}
      {troubled && <span className="trouble"> · degraded</span>}
    </span>
  );
}
