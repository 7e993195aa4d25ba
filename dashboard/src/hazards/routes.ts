import { createLazyRoute } from "@tanstack/react-router";

import { HazardsPage } from "./HazardsPage";

export const hazards = createLazyRoute("/hazards")({ component: HazardsPage });
