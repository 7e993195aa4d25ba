import type { Schemas } from "../api/client";

const NAMES: Record<string, string> = {
  manual: "manual reruns",
  drift: "drift, late data and upstream reruns",
  transient: "transient retries",
  code: "code retries",
};

/** What is left of each budget. */
export function Budgets({ budgets }: { budgets: Record<string, Schemas["Budget"]> }) {
  return (
    <ul className="budgets">
      {Object.entries(budgets).map(([name, budget]) => (
        <li key={name} data-spent={(budget.of > 0 && budget.used >= budget.of) || undefined}>
          {NAMES[name] ?? name}: {budget.used} of {budget.of} used
        </li>
      ))}
    </ul>
  );
}
