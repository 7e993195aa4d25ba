import type { Schemas } from "../api/client";

type Coverage = Schemas["Coverage"];

export function count(coverage: Coverage, cover: string): number {
  return coverage.hazards.filter((hazard) => hazard.cover === cover).length;
}

/** The pipelines with the most uncovered hazards first, then weak ones. */
export function gapsFirst(items: readonly Coverage[]): Coverage[] {
  return [...items].sort(
    (one, other) =>
      count(other, "uncovered") - count(one, "uncovered") ||
      count(other, "weak") - count(one, "weak") ||
      (one.pipeline < other.pipeline ? -1 : 1),
  );
}

const ORDER: Record<string, number> = { uncovered: 0, weak: 1, covered: 2 };

/** The gaps of one pipeline first. */
export function hazardsInOrder(coverage: Coverage): Coverage["hazards"] {
  return [...coverage.hazards].sort((one, other) => (ORDER[one.cover] ?? 3) - (ORDER[other.cover] ?? 3));
}
