import { defineConfig } from "vitest/config";

// What takes half an hour: not part of the tests.
export default defineConfig({
  test: { root: import.meta.dirname, include: ["bench/*.test.ts"], environment: "node", fileParallelism: false, hookTimeout: 300_000 },
});
