import { Ago } from "../parts/Ago";
import { Time } from "../parts/Time";
import { useNow } from "../time/useNow";

const SOON = 14 * 86_400_000;

/** When a token ends; one that ends within two weeks, or has ended, says so. */
export function Expiry({ at }: { at: string | null | undefined }) {
  const now = useNow();
  if (typeof at !== "string") return <span className="muted">never</span>;
  const left = Date.parse(at) - now;
  if (left > SOON) return <Time at={at} zone="UTC" />;
  return (
    <span data-word={left <= 0 ? "failed" : "waiting"}>
      {left <= 0 ? "expired " : "soon: "}
      <Ago at={at} ahead />
    </span>
  );
}
