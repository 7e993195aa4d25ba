import { useSyncExternalStore } from "react";

import { hub } from "../live/hub";
import type { Status } from "../live/messages";

/** Is what is shown live? */
export function useLive(): Status {
  return useSyncExternalStore(hub.subscribe, hub.snapshot);
}
