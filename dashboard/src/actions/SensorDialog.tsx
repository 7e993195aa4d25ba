import { useId, useState } from "react";

import { api, data } from "../api/client";
import { ActionDialog } from "./ActionDialog";
import { readFields } from "./fields";

interface Props {
  pipeline: string;
  keys: readonly string[];
  onClose: () => void;
}

/** Write a sensor: fields as on the command line, or JSON. */
export function SensorDialog({ pipeline, keys, onClose }: Props) {
  const [key, setKey] = useState(keys[0] ?? "");
  const [text, setText] = useState("");
  const options = useId();
  const read = readFields(text);
  const send = async () => {
    if (typeof read === "string") throw new Error(read);
    const written = data(
      await api.PUT("/api/v1/pipelines/{pipeline}/sensors/{key}", {
        params: { path: { pipeline, key } },
        body: read,
      }),
    );
    return JSON.stringify(written, null, 1);
  };
  return (
    <ActionDialog
      title="Set a sensor"
      target={pipeline}
      verb="Write it"
      reason={false}
      ready={typeof read !== "string" && key !== ""}
      send={send}
      onClose={onClose}
    >
      <p>The latest write wins. What reads this key is evaluated at once; a trigger may open a run.</p>
      <label className="field">
        Key
        <input list={options} required value={key} onChange={(event) => setKey(event.target.value)} />
      </label>
      <datalist id={options}>
        {keys.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <label className="field">
        Fields
        <textarea
          rows={3}
          required
          placeholder={'count=5000 status=ready\nor {"count": 5000}'}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {text !== "" && typeof read === "string" && <p className="problem">{read}</p>}
    </ActionDialog>
  );
}
