import { useEffect, useState } from "react";

import { clock } from "./clock";

/** The controller's time, looked at again every so many milliseconds while the page is visible. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(() => clock.now());
  useEffect(() => {
    const look = () => {
      if (!document.hidden) setNow(clock.now());
    };
    look();
    const timer = setInterval(look, every);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [every]);
  return now;
}
