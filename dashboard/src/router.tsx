import { createRootRoute, createRoute, createRouter, retainSearchParams } from "@tanstack/react-router";

import { OverviewPage } from "./overview/OverviewPage";
import { NoSuchPage } from "./shell/NoSuchPage";
import { Shell } from "./shell/Shell";
import { cellSearch, overviewSearch, parseSearch, rootSearch, stringifySearch } from "./url/search";

const rootRoute = createRootRoute({
  component: Shell,
  notFoundComponent: NoSuchPage,
  validateSearch: rootSearch,
  search: { middlewares: [retainSearchParams(["zone"])] },
});

export const overviewRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  validateSearch: overviewSearch,
  component: OverviewPage,
});

const pipelineRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/$pipeline",
}).lazy(() => import("./pipeline/routes").then((module) => module.pipeline));

const cellRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/$pipeline/cell",
  validateSearch: cellSearch,
}).lazy(() => import("./pipeline/routes").then((module) => module.cell));

const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/$pipeline/runs/$schedule/$date",
}).lazy(() => import("./run/routes").then((module) => module.run));

export const router = createRouter({
  routeTree: rootRoute.addChildren([overviewRoute, pipelineRoute, cellRoute, runRoute]),
  parseSearch,
  stringifySearch,
  defaultPreload: false,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
