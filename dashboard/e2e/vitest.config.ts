import { defineConfig } from "vitest/config";

// The page in a real Chromium, against a real `interlock serve`. One file after the other: they share the machine.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    globalSetup: ["./found.ts"],
  },
});
