import { Link } from "@tanstack/react-router";

import { LiveBadge } from "./LiveBadge";
import { SessionMenu } from "./SessionMenu";
import { ThemePicker } from "./ThemePicker";
import { ZonePicker } from "./ZonePicker";

const PAGES = [
  ["/", "Overview"],
  ["/events", "Events"],
  ["/sla", "SLA"],
  ["/graph", "Graph"],
  ["/hazards", "Hazards"],
  ["/operate", "Operate"],
  ["/alerts", "Alerts"],
  ["/controller", "Controller"],
] as const;

/** Where one is, where one can go, and whether it is live. */
export function TopBar() {
  return (
    <header className="top">
      <Link to="/" className="brand">
        Interlock
      </Link>
      <nav aria-label="Pages">
        {PAGES.map(([path, name]) => (
          <Link key={path} to={path} activeOptions={{ exact: true, includeSearch: false }}>
            {name}
          </Link>
        ))}
      </nav>
      <LiveBadge />
      <ZonePicker />
      <ThemePicker />
      <SessionMenu />
    </header>
  );
}
