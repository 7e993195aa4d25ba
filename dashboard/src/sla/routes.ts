import { createLazyRoute } from "@tanstack/react-router";

import { SlaPage } from "./SlaPage";

export const sla = createLazyRoute("/sla")({ component: SlaPage });
