import { createLazyRoute } from "@tanstack/react-router";

import { ControllerPage } from "./ControllerPage";

export const controller = createLazyRoute("/controller")({ component: ControllerPage });
