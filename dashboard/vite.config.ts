import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

import { licences } from "./licences.ts";

// Everything the page needs is built into files of its own: no inline script or style, no source map, nothing fetched
// from elsewhere. The controller serves `dist` from its package.
export default defineConfig({
  plugins: [react(), licences(true)],
  build: {
    outDir: "../src/interlock/web/dist",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  worker: { format: "es", plugins: () => [licences(false)] },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
  test: { include: ["src/**/*.test.{ts,tsx}"], restoreMocks: true, testTimeout: 30_000 },
});
