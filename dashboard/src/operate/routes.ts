import { createLazyRoute } from "@tanstack/react-router";

import { OperatePage } from "./OperatePage";

export const operate = createLazyRoute("/operate")({ component: OperatePage });
