/** How long to wait before the next try, in milliseconds: 1 to 30 s, doubling, with jitter so that tabs do not march. */
export function pause(tries: number, chance: number = Math.random()): number {
  const most = Math.min(1000 * 2 ** Math.max(tries - 1, 0), 30_000);
  return Math.max(1000, Math.round(most * (0.5 + chance / 2)));
}
