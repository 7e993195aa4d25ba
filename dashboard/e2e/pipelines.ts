// Documents of pipelines for the tests.

/** One that waits for a row count of at least 1000, then runs a command that succeeds. */
export function gated(id: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    pipeline: { id, owner: "analytics-team", description: `Test of ${id}` },
    schedule: { trigger: { key: "upstream-complete", check: "equals", field: "status", value: "ready" } },
    validation: { rules: [{ key: "row-count", check: "gte", field: "count", value: 1000 }] },
    job: { type: "command", config: { command: ["true"] }, maxManualReruns: 3 },
    ...changes,
  };
}
