import { createLazyRoute } from "@tanstack/react-router";

import { RunPage } from "./RunPage";

export const run = createLazyRoute("/pipelines/$pipeline/runs/$schedule/$date")({ component: RunPage });
