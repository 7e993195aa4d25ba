import { defineConfig } from "vitest/config";

// What takes over half an hour: not part of the tests. ONLY=page measures what has that in its name.
const only = process.env["ONLY"] ?? "";

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: [only === "" ? "bench/*.test.ts" : `bench/*${only}*.test.ts`],
    environment: "node",
    fileParallelism: false,
    hookTimeout: 600_000,
    globalSetup: ["./bench/figures.ts", "./found.ts"],
  },
});
