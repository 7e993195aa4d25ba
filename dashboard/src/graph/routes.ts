import { createLazyRoute } from "@tanstack/react-router";

import { GraphPage } from "./GraphPage";

export const graph = createLazyRoute("/graph")({ component: GraphPage });
