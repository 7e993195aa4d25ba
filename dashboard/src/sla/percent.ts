/** `99.2 %`; never rounded up to all. */
export function percent(part: number): string {
  return `${(Math.floor(part * 1000) / 10).toFixed(part === 1 ? 0 : 1)} %`;
}
