import { useState } from "react";

import { keepTheme, readTheme, THEMES, type Theme } from "../settings";

const SIGNS: Record<Theme, string> = { system: "◐", light: "○", dark: "●" };

/** As the system has it, light or dark. */
export function ThemePicker() {
  const [theme, setTheme] = useState(readTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  const change = () => {
    keepTheme(next);
    setTheme(next);
  };
  return (
    <button type="button" className="quiet icon" onClick={change} aria-label={`Theme: ${theme}; change to ${next}`}>
      <span aria-hidden="true">{SIGNS[theme]}</span>
    </button>
  );
}
