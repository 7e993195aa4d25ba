import { useQuery } from "@tanstack/react-query";

import { controllerQuery } from "../api/controller";
import { Ago } from "../parts/Ago";
import { useLive } from "../parts/useLive";
import type { Overview } from "./states";

/** Nothing needs attention, and how the page knows. */
export function AllIsWell({ overview }: { overview: Overview }) {
  const { phase } = useLive();
  const controller = useQuery(controllerQuery);
  const last = controller.data?.watchdog.lastAt;
  return (
    <p className="well">
      <b>All is well</b> with {overview.total} {overview.total === 1 ? "pipeline" : "pipelines"}:{" "}
      {phase === "live" ? "this page is live" : "this page is not live"}
      {typeof last === "string" ? (
        <>
          , the watchdog last looked <Ago at={last} />.
        </>
      ) : (
        ", the watchdog has not looked yet."
      )}
    </p>
  );
}
