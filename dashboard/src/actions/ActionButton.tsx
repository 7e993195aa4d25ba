import { useState, type ReactNode } from "react";

import { useLimits, useMay, type Scope } from "../api/session";
import { useLive } from "../parts/useLive";

interface Props {
  scope: Scope;
  children: ReactNode;
  disabled?: string | undefined;
  /** It is about all pipelines: a token that is limited to some may not do it. */
  everywhere?: boolean;
  dialog: (close: () => void) => ReactNode;
}

/** A button that opens an action's dialog. Without the scope it is disabled and names it; so it is while not live. */
export function ActionButton({ scope, children, disabled, everywhere = false, dialog }: Props) {
  const [open, setOpen] = useState(false);
  const may = useMay(scope);
  const { phase } = useLive();
  const limits = useLimits();
  const limited = everywhere && limits !== null;
  const refused = !may ? `needs the scope ${scope}` : limited ? "needs a token that is not limited to some pipelines" : undefined;
  const why = refused ?? (phase === "lost" ? "not live: nothing can be changed" : disabled);
  return (
    <>
      <button type="button" disabled={why !== undefined} title={why} onClick={() => setOpen(true)}>
        {children}
        {refused !== undefined && <span className="muted"> ({refused})</span>}
      </button>
      {open && dialog(() => setOpen(false))}
    </>
  );
}
