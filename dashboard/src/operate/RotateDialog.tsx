import { useState } from "react";

import { ActionDialog } from "../actions/ActionDialog";
import { api, data } from "../api/client";
import { LIVES } from "./lives";

interface Props {
  name: string;
  onMade: () => void;
  onClose: () => void;
}

/** A new text for a token; it is in the answer, this once. */
export function RotateDialog({ name, onMade, onClose }: Props) {
  const [grace, setGrace] = useState("1h");
  const [expires, setExpires] = useState("");
  const send = async () => {
    const made = data(
      await api.POST("/api/v1/tokens/{slot}", {
        params: { path: { slot: `${name}:rotate` } },
        body: { grace, expires: expires === "" ? null : expires },
      }),
    );
    onMade();
    return `${made.token}\nIt is not shown again.`;
  };
  return (
    <ActionDialog title="Rotate a token" target={name} verb="Rotate it" reason={false} send={send} onClose={onClose}>
      <p>It gets a new text; its name, scopes and limits stay.</p>
      <label className="field">
        The text before works for
        <select value={grace} onChange={(event) => setGrace(event.target.value)}>
          <option value="0s">no longer; its sessions end</option>
          <option value="1h">an hour more</option>
          <option value="24h">a day more</option>
        </select>
      </label>
      <label className="field">
        Expires
        <select value={expires} onChange={(event) => setExpires(event.target.value)}>
          <option value="">as before</option>
          {LIVES.filter(([value]) => value !== "never").map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
    </ActionDialog>
  );
}
