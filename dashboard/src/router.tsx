import { createRootRoute, createRoute, createRouter, retainSearchParams } from "@tanstack/react-router";

import { OverviewPage } from "./overview/OverviewPage";
import { NoSuchPage } from "./shell/NoSuchPage";
import { PageFailure } from "./shell/PageFailure";
import { Shell } from "./shell/Shell";
import { whole } from "./shell/upgrade";
import {
  alertSearch,
  cellSearch,
  eventSearch,
  graphSearch,
  hazardSearch,
  overviewSearch,
  parseSearch,
  pipelineSearch,
  rootSearch,
  runSearch,
  slaSearch,
  stringifySearch,
} from "./url/search";

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
  validateSearch: pipelineSearch,
}).lazy(() => whole(import("./pipeline/routes")).then((module) => module.pipeline));

const cellRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/$pipeline/cell",
  validateSearch: cellSearch,
}).lazy(() => whole(import("./pipeline/routes")).then((module) => module.cell));

const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/pipelines/$pipeline/runs/$schedule/$date",
  validateSearch: runSearch,
}).lazy(() => whole(import("./run/routes")).then((module) => module.run));

const eventsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/events",
  validateSearch: eventSearch,
}).lazy(() => whole(import("./events/routes")).then((module) => module.events));

const slaRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/sla",
  validateSearch: slaSearch,
}).lazy(() => whole(import("./sla/routes")).then((module) => module.sla));

const graphRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/graph",
  validateSearch: graphSearch,
}).lazy(() => whole(import("./graph/routes")).then((module) => module.graph));

const hazardsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/hazards",
  validateSearch: hazardSearch,
}).lazy(() => whole(import("./hazards/routes")).then((module) => module.hazards));

const operateRoute = createRoute({ getParentRoute: () => rootRoute, path: "/operate" }).lazy(() =>
  whole(import("./operate/routes")).then((module) => module.operate),
);

const alertsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/alerts",
  validateSearch: alertSearch,
}).lazy(() => whole(import("./alerts/routes")).then((module) => module.alerts));

const controllerRoute = createRoute({ getParentRoute: () => rootRoute, path: "/controller" }).lazy(() =>
  whole(import("./controller/routes")).then((module) => module.controller),
);

const pages = [
  overviewRoute,
  pipelineRoute,
  cellRoute,
  runRoute,
  eventsRoute,
  slaRoute,
  graphRoute,
  hazardsRoute,
  operateRoute,
  alertsRoute,
  controllerRoute,
] as const;

export const router = createRouter({
  routeTree: rootRoute.addChildren(pages),
  parseSearch,
  stringifySearch,
  defaultPreload: false,
  defaultErrorComponent: PageFailure,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
