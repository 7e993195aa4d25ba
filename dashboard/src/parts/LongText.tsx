import { useState } from "react";

import { cut, visible } from "../text/visible";

/** Several lines that others wrote; the beginning only, until somebody asks for all. */
export function LongText({ children }: { children: string }) {
  const [all, setAll] = useState(false);
  const { shown, more } = cut(children);
  return (
    <>
      <span className="long-text">{visible(all ? children : shown)}</span>
      {more && !all && (
        <button type="button" className="quiet" onClick={() => setAll(true)}>
          show all ({Math.ceil(children.length / 1024)} kB)
        </button>
      )}
    </>
  );
}
