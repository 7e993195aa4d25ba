import { STANDING_WORDS, STANDINGS, type Overview, type Standing } from "./states";

const ALWAYS: ReadonlySet<Standing> = new Set(["breached", "at-risk", "failed", "held", "waiting", "running", "done"]);

interface Props {
  counts: Overview["counts"] | undefined;
  chosen: readonly Standing[];
  onChoose: (state: Standing[] | undefined) => void;
}

/** How many pipelines stand how. Each counter filters; several may be chosen. */
export function Counters({ counts, chosen, onChoose }: Props) {
  const toggle = (standing: Standing) => {
    const next = chosen.includes(standing) ? chosen.filter((one) => one !== standing) : [...chosen, standing];
    onChoose(next.length === 0 ? undefined : STANDINGS.filter((one) => next.includes(one)));
  };
  const shown = STANDINGS.filter(
    (standing) => ALWAYS.has(standing) || (counts?.[standing] ?? 0) > 0 || chosen.includes(standing),
  );
  return (
    <div className="counters" role="group" aria-label="Filter by state">
      {shown.map((standing) => (
        <button
          key={standing}
          type="button"
          className="counter"
          data-standing={standing}
          data-none={(counts?.[standing] ?? 0) === 0 || undefined}
          aria-pressed={chosen.includes(standing)}
          onClick={() => toggle(standing)}
        >
          <b>{counts?.[standing] ?? "–"}</b> {STANDING_WORDS[standing]}
        </button>
      ))}
    </div>
  );
}
