// What a browser remembers of its reader: the theme, nothing else. Never a token.

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "interlock-theme";

export function readTheme(): Theme {
  try {
    // eslint-disable-next-line no-restricted-globals -- the one place
    const kept = localStorage.getItem(KEY);
    return THEMES.find((one) => one === kept) ?? "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function keepTheme(theme: Theme): void {
  applyTheme(theme);
  try {
    // eslint-disable-next-line no-restricted-globals -- the one place
    localStorage.setItem(KEY, theme);
  } catch {
    // It is forgotten with the tab.
  }
}
