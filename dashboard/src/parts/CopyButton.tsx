import { useEffect, useState } from "react";

const SHOWN = 1500;

/** Copies a text; says so. */
export function CopyButton({ text, children }: { text: string; children: string }) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  useEffect(() => {
    if (state === "") return undefined;
    const timer = setTimeout(() => setState(""), SHOWN);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      setState("failed");
    }
  };
  return (
    <button type="button" onClick={() => void copy()}>
      {state === "" ? children : state === "copied" ? "Copied" : "Not copied: the browser forbids it"}
    </button>
  );
}
