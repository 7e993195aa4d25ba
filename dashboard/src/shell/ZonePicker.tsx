import { useNavigate, useSearch } from "@tanstack/react-router";

import { viewerZone, ZONE_CHOICES, type ZoneChoice } from "../time/zones";

function name(choice: ZoneChoice): string {
  if (choice === "pipeline") return "pipeline";
  return choice === "viewer" ? `mine (${viewerZone()})` : "UTC";
}

/** Whose clock times are shown by. */
export function ZonePicker() {
  const { zone } = useSearch({ from: "__root__" });
  const navigate = useNavigate();
  const choose = (choice: ZoneChoice) => {
    void navigate({ to: ".", search: (before) => ({ ...before, zone: choice === "pipeline" ? undefined : choice }) });
  };
  return (
    <label className="pick">
      Zone
      <select value={zone ?? "pipeline"} onChange={(event) => choose(event.target.value as ZoneChoice)}>
        {ZONE_CHOICES.map((choice) => (
          <option key={choice} value={choice}>
            {name(choice)}
          </option>
        ))}
      </select>
    </label>
  );
}
