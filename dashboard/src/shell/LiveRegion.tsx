import { useEffect, useState } from "react";

import { announcer } from "./announcer";

/** The one place that speaks to screen readers by itself. */
export function LiveRegion() {
  const [text, setText] = useState("");
  useEffect(() => announcer.connect(setText), []);
  return (
    <div className="spoken" aria-live="polite" aria-atomic="true">
      {text}
    </div>
  );
}
