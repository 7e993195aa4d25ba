import { createContext, useContext } from "react";

import { zoneOf, type ZoneChoice } from "./zones";

export const ZoneContext = createContext<ZoneChoice>("pipeline");

/** The zone to show times of a pipeline in, as the reader chose. */
export function useZone(pipelineZone: string | undefined): string {
  return zoneOf(useContext(ZoneContext), pipelineZone);
}
