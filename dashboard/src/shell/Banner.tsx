import { useEffect, useState } from "react";

import { hub } from "../live/hub";
import { useLive } from "../parts/useLive";
import { viewerZone, formatTime } from "../time/zones";

/** What is shown is not live: since when, and when it is tried again. */
export function Banner() {
  const status = useLive();
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (status.phase !== "lost" || status.retryIn === null) return undefined;
    const until = performance.now() + status.retryIn;
    const count = () => setLeft(Math.max(Math.ceil((until - performance.now()) / 1000), 0));
    count();
    const timer = setInterval(count, 500);
    return () => clearInterval(timer);
  }, [status]);
  if (status.phase !== "lost") return null;
  const since = status.lostAt === null || status.lostAt === 0 ? "" : ` since ${formatTime(status.lostAt, viewerZone(), status.lostAt)}`;
  return (
    <div className="banner" role="alert">
      Not live{since}, retrying in {left} s. What is shown may be old; nothing can be changed meanwhile.
      <button type="button" className="quiet" onClick={() => hub.retryNow()}>
        Retry now
      </button>
    </div>
  );
}
