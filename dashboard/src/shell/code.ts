/** The single-use code of `interlock open`: taken out of the address at once, so that no history keeps it. */
export function takeCode(): string | null {
  const match = /^#code=([A-Za-z0-9_-]{20,128})$/.exec(window.location.hash);
  if (match === null) return null;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  return match[1] ?? null;
}
