import { useEffect, useState } from "react";

import { readOutput } from "../api/output";
import { safeLink, visible } from "../text/visible";

interface Props {
  pipeline: string;
  runId: string;
  attempt: number;
  running: boolean;
}

const AGAIN = 2000;
const KEPT = 512 * 1024;

/** What one attempt's job wrote, as it comes. */
export function JobOutput({ pipeline, runId, attempt, running }: Props) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [link, setLink] = useState<string | null>(null);
  const [state, setState] = useState("");
  const [length, setLength] = useState(0);
  useEffect(() => {
    if (!open) return undefined;
    const stopped = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let offset = 0;
    // No event tells of what a job writes: while it runs and somebody looks, it is asked.
    const again = () => {
      if (document.hidden) timer = setTimeout(again, AGAIN);
      else void read();
    };
    const read = async () => {
      try {
        const piece = await readOutput(pipeline, runId, offset, stopped.signal);
        const more = piece.next > offset;
        offset = piece.next;
        setLength(offset);
        setText((before) => (before + piece.text).slice(-KEPT));
        setLink(safeLink(piece.link));
        setState(piece.complete ? "complete" : "");
        if (!piece.complete && (more || running)) timer = setTimeout(again, more ? 0 : AGAIN);
      } catch (error) {
        if (!stopped.signal.aborted) setState(error instanceof Error ? error.message : String(error));
      }
    };
    void read();
    return () => {
      stopped.abort();
      clearTimeout(timer);
      setText("");
    };
  }, [open, pipeline, runId, running]);
  return (
    <details className="output" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Attempt {attempt}
        {running ? ", running" : ""}
      </summary>
      {open && (
        <>
          {length > KEPT && (
            <p className="muted">
              {length.toLocaleString("en")} bytes: the beginning is left out. <code>interlock logs</code> shows all of it.
            </p>
          )}
          <pre className="json">{text === "" ? "" : visible(text)}</pre>
          <p className="muted">
            {text === "" && state !== "complete" && "Nothing yet. "}
            {state === "complete" ? "Nothing more will come." : state}
            {link !== null && (
              <>
                {" "}
                <a href={link} target="_blank" rel="noopener noreferrer">
                  Look at the target
                </a>
              </>
            )}
          </p>
        </>
      )}
    </details>
  );
}
