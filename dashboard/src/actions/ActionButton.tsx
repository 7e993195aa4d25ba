import { useState, type ReactNode } from "react";

import { useMay, type Scope } from "../api/session";
import { useLive } from "../parts/useLive";

interface Props {
  scope: Scope;
  children: ReactNode;
  disabled?: string | undefined;
  dialog: (close: () => void) => ReactNode;
}

/** A button that opens an action's dialog. Without the scope it is disabled and names it; so it is while not live. */
export function ActionButton({ scope, children, disabled, dialog }: Props) {
  const [open, setOpen] = useState(false);
  const may = useMay(scope);
  const { phase } = useLive();
  const why = !may ? `needs the scope ${scope}` : phase === "lost" ? "not live: nothing can be changed" : disabled;
  return (
    <>
      <button type="button" disabled={why !== undefined} title={why} onClick={() => setOpen(true)}>
        {children}
        {!may && <span className="muted"> ({scope})</span>}
      </button>
      {open && dialog(() => setOpen(false))}
    </>
  );
}
