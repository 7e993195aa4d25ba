import { Combobox, ComboboxItem, ComboboxPopover, ComboboxProvider } from "@ariakit/react";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { api, data } from "../api/client";
import { useMay } from "../api/session";
import { visibleLine } from "../text/visible";

interface Props {
  label: string;
  placeholder?: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

const SHOWN = 20;

/** One of the pipelines: by typing a part of its name. */
export function PipelinePicker({ label, placeholder = "all pipelines", value, onChange }: Props) {
  const [text, setText] = useState(value ?? "");
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setText(value ?? "");
  }
  // Without the right to read the names, any is taken: the controller says whether it knows it.
  const reads = useMay("read");
  const names = useQuery({
    queryKey: ["names", text],
    queryFn: async ({ signal }) => {
      const query = { q: text, limit: SHOWN, bucket: "day" as const, from: new Date(0).toISOString(), to: new Date(86_400_000).toISOString() };
      return data(await api.GET("/api/v1/overview", { params: { query }, signal })).items.map((lane) => lane.id);
    },
    staleTime: 10_000,
    enabled: reads,
  });
  const choose = (next: string) => {
    setText(next);
    if (next === "") onChange(undefined);
    else if (!reads) onChange(next);
  };
  // A whole name that was typed or pasted counts as soon as it is known to be one.
  const whole = text !== "" && text !== value && names.data?.includes(text) === true;
  const chosen = useRef(onChange);
  useEffect(() => {
    chosen.current = onChange;
  });
  useEffect(() => {
    if (whole) chosen.current(text);
  }, [whole, text]);
  return (
    <ComboboxProvider inputValue={text} setInputValue={choose}>
      <label className="pick">
        {label}
        <Combobox className="search" placeholder={placeholder} autoSelect={false} />
      </label>
      <ComboboxPopover className="menu" gutter={4} sameWidth portal={false} aria-label={label}>
        {(names.data ?? []).map((name) => (
          <ComboboxItem key={name} value={name} className="menu-item">
            {visibleLine(name)}
          </ComboboxItem>
        ))}
        {names.data?.length === 0 && <div className="menu-text muted">No pipeline matches.</div>}
      </ComboboxPopover>
    </ComboboxProvider>
  );
}
