import { visibleLine } from "../text/visible";

const LONG = 120;

/** A value in a cell of a table: short, all of it on hover. */
export function Value({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <span className="muted">–</span>;
  const text = visibleLine(typeof value === "string" ? value : JSON.stringify(value));
  return (
    <code title={text.length > LONG ? text.slice(0, 2000) : undefined}>{text.length > LONG ? `${text.slice(0, LONG)}…` : text}</code>
  );
}
