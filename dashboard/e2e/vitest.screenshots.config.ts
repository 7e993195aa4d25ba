import { defineConfig } from "vitest/config";

import tests from "./vitest.config.ts";

export default defineConfig({ test: { ...tests.test, include: ["screenshots/*.test.ts"], testTimeout: 600_000, hookTimeout: 600_000 } });
