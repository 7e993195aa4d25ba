import { useQuery } from "@tanstack/react-query";

import { controllerQuery } from "../api/controller";
import { Ago } from "../parts/Ago";
import { useLive } from "../parts/useLive";

const WORDS = { connecting: "connecting", live: "live", lost: "not live" } as const;

/** How the page knows what it shows: the stream, and the watchdog's last pass. */
export function LiveBadge() {
  const { phase } = useLive();
  const controller = useQuery(controllerQuery);
  const last = controller.data?.watchdog.lastAt;
  const failed = controller.data?.watchdog.failedChecks.length ?? 0;
  const troubled = (controller.data?.troubles.length ?? 0) > 0 || failed > 0;
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
