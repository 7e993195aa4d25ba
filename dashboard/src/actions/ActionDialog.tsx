import { useEffect, useId, useRef, useState, type ReactNode, type SubmitEvent } from "react";

import { ApiError } from "../api/problem";
import { LongText } from "../parts/LongText";

interface Props {
  title: string;
  /** What is acted on: pipeline, schedule, period. */
  target: string;
  /** What the button says. */
  verb: string;
  danger?: boolean;
  /** Some actions need no reason: what they write is the reason. */
  reason?: boolean;
  ready?: boolean;
  children?: ReactNode;
  /** Sends it, once; what the controller answered, word for word. */
  send: (reason: string) => Promise<string>;
  onClose: () => void;
}

/** An action: its target and effect, a reason, one request, and the controller's own answer. Nothing is assumed. */
export function ActionDialog({ title, target, verb, danger, reason: wantsReason = true, ready = true, children, send, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<string | null>(null);
  const [problem, setProblem] = useState<{ text: string; requestId: string } | null>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) element.showModal();
  }, []);
  const submit = async (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (busy || answer !== null) return;
    setBusy(true);
    setProblem(null);
    try {
      setAnswer(await send(reason.trim()));
    } catch (error) {
      setProblem({
        text: error instanceof Error ? error.message : String(error),
        requestId: error instanceof ApiError ? error.requestId : "",
      });
    } finally {
      setBusy(false);
    }
  };
  return (
    <dialog ref={dialog} className="action" aria-labelledby={heading} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id={heading}>{title}</h2>
        <p className="target mono">{target}</p>
        {children}
        {wantsReason && (
          <label className="field">
            Reason
            <textarea
              required
              rows={2}
              maxLength={2000}
              value={reason}
              disabled={answer !== null}
              onChange={(event) => setReason(event.target.value)}
            />
          </label>
        )}
        {problem !== null && (
          <div className="problem" role="alert">
            <LongText>{problem.text}</LongText>
            {problem.requestId !== "" && <p className="muted">Request {problem.requestId}</p>}
          </div>
        )}
        {answer !== null && (
          <div className="answer" role="status">
            <LongText>{answer}</LongText>
          </div>
        )}
        <div className="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {answer === null ? "Cancel" : "Close"}
          </button>
          {answer === null && (
            <button type="submit" className={danger === true ? "danger" : "primary"} disabled={busy || !ready}>
              {busy ? "Sending…" : verb}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}
