import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { controllerQuery } from "../api/controller";
import { useMay } from "../api/session";
import { useLive } from "../parts/useLive";

/** The controller is of another version than when this page was loaded: it goes on, and the reader says when to reload. */
export function UpgradeNotice() {
  const queries = useQueryClient();
  const { phase } = useLive();
  useEffect(() => {
    // A connection that is back may be one to another controller.
    if (phase === "live") void queries.invalidateQueries({ queryKey: ["controller"] });
  }, [phase, queries]);
  const version = useQuery({ ...controllerQuery, enabled: useMay("read") }).data?.version;
  const [first, setFirst] = useState<string | undefined>(undefined);
  if (first === undefined && version !== undefined) setFirst(version);
  if (version === undefined || first === undefined || version === first) return null;
  return (
    <div className="notices" role="status">
      <p>
        The controller is now version {version}; this page was loaded from version {first}.
        <button type="button" className="quiet" onClick={() => window.location.reload()}>
          Reload
        </button>
      </p>
    </div>
  );
}
