import { createLazyRoute } from "@tanstack/react-router";

import { AlertsPage } from "./AlertsPage";

export const alerts = createLazyRoute("/alerts")({ component: AlertsPage });
