import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { ApiError } from "./api/problem";
import { router } from "./router";
import { applyTheme, readTheme } from "./settings";
import { takeCode } from "./shell/code";
import { SessionGate } from "./shell/SessionGate";
import { reloadWhenUpgraded } from "./shell/upgrade";

import "./styles/base.css";
import "./styles/shell.css";
import "./styles/overview.css";
import "./styles/pages.css";

applyTheme(readTheme());
const code = takeCode();

reloadWhenUpgraded(() => router.latestLocation.href);

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 2,
    },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <SessionGate code={code}>
        <RouterProvider router={router} />
      </SessionGate>
    </QueryClientProvider>
  </StrictMode>,
);
