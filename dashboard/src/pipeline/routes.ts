import { createLazyRoute } from "@tanstack/react-router";

import { CellPage } from "./CellPage";
import { PipelinePage } from "./PipelinePage";

export const pipeline = createLazyRoute("/pipelines/$pipeline")({ component: PipelinePage });
export const cell = createLazyRoute("/pipelines/$pipeline/cell")({ component: CellPage });
