import { visibleLine } from "../text/visible";

/** A line that others wrote: text, with nothing hidden in it. */
export function Text({ children }: { children: string }) {
  return <>{visibleLine(children)}</>;
}
