import { useState } from "react";

import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import type { Scope } from "../api/session";
import { LIVES } from "./lives";

const SCOPES: readonly Scope[] = ["read", "sensor:write", "job:write", "operate", "admin"];

interface Props {
  first: boolean;
  onMade: () => void;
  onClose: () => void;
}

/** Names as people write them, with commas between. */
function names(text: string): string[] {
  return text.split(",").map((one) => one.trim()).filter(Boolean);
}

/** Make a token; it is in the answer, this once. */
export function TokenDialog({ first, onMade, onClose }: Props) {
  const [name, setName] = useState("");
  const [expires, setExpires] = useState("365d");
  const [pipelines, setPipelines] = useState("");
  const [owners, setOwners] = useState("");
  const [scopes, setScopes] = useState<Scope[]>(["read"]);
  const toggle = (scope: Scope) => setScopes((now) => (now.includes(scope) ? now.filter((one) => one !== scope) : [...now, scope]));
  const send = async () => {
    const made = data(await api.POST("/api/v1/tokens", { body: { name: name.trim(), scopes, pipelines: names(pipelines), owners: names(owners), expires } }));
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
      <label className="field">
        Limited to pipelines (all of them without)
        <input placeholder="gold-revenue, gold-report" value={pipelines} onChange={(event) => setPipelines(event.target.value)} />
      </label>
      <label className="field">
        Limited to owners
        <input placeholder="analytics-team" value={owners} onChange={(event) => setOwners(event.target.value)} />
      </label>
      <label className="field">
        Expires
        <select value={expires} onChange={(event) => setExpires(event.target.value)}>
          {LIVES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
    </ActionDialog>
  );
}
