import { api, data } from "../api/client";
import { ActionDialog } from "../actions/ActionDialog";

/** One pass of the eight checks, now. */
export function WatchdogDialog({ onClose }: { onClose: () => void }) {
  const send = async () => {
    const { failedChecks } = data(await api.POST("/api/v1/watchdog/run"));
    return failedChecks.length === 0 ? "done: no check failed" : `failed checks: ${failedChecks.join(", ")}`;
  };
  return (
    <ActionDialog title="Run the watchdog" target="the controller" verb="Run it" reason={false} send={send} onClose={onClose}>
      <p>All eight checks are made at once; what they find is published as events, each once.</p>
    </ActionDialog>
  );
}
