import { useState } from "react";

import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import type { Scope } from "../api/session";

const SCOPES: readonly Scope[] = ["read", "sensor:write", "job:write", "operate", "admin"];

interface Props {
  first: boolean;
  onMade: () => void;
  onClose: () => void;
}

/** Make a token; it is in the answer, this once. */
export function TokenDialog({ first, onMade, onClose }: Props) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read"]);
  const toggle = (scope: Scope) => setScopes((now) => (now.includes(scope) ? now.filter((one) => one !== scope) : [...now, scope]));
  const send = async () => {
    const made = data(await api.POST("/api/v1/tokens", { body: { name: name.trim(), scopes, pipelines: [], owners: [] } }));
    onMade();
    return `${made.token}\nIt is not shown again.`;
  };
  return (
    <ActionDialog title="Make a token" target="the controller" verb="Make it" reason={false} ready={scopes.length > 0} send={send} onClose={onClose}>
      {first && <p className="problem">From the first token on, every caller needs one, this page included: make yourself an admin token.</p>}
      <label className="field">
        For whom
        <input required maxLength={64} value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <fieldset>
        <legend>May</legend>
        {SCOPES.map((scope) => (
          <label key={scope} className="check">
            <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
            {scope}
          </label>
        ))}
      </fieldset>
    </ActionDialog>
  );
}
