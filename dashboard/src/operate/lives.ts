/** How long a token may live, as the controller writes it. */
export const LIVES = [
  ["30d", "in 30 days"],
  ["90d", "in 90 days"],
  ["365d", "in a year"],
  ["never", "never"],
] as const;
