import { useEffect, useRef, useState } from "react";

interface Props {
  label: string;
  placeholder: string;
  value: string | undefined;
  shortcut?: boolean;
  onChange: (value: string | undefined) => void;
}

const TYPING = 250;

/** A text filter: the address follows a moment after the typing; Back, and a cleared filter, are followed here. */
export function TypedInput({ label, placeholder, value, shortcut, onChange }: Props) {
  const [text, setText] = useState(value ?? "");
  const [asked, setAsked] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  if (asked !== value) {
    setAsked(value);
    setText(value ?? "");
  }
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const wanted = next === "" ? undefined : next;
      setAsked(wanted);
      onChange(wanted);
    }, TYPING);
  };
  return (
    <input
      type="search"
      className="search"
      data-key={shortcut === true ? "/" : undefined}
      placeholder={placeholder}
      aria-label={label}
      value={text}
      onChange={(event) => type(event.target.value)}
    />
  );
}
