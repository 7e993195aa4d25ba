import { LETTERS, MARKS, type Lane } from "./states";

/** What the cells that are shown mean: colour, shape and word. */
export function Legend({ lanes }: { lanes: readonly Lane[] }) {
  const cells = lanes.map((lane) => lane.cells).join("");
  const marks = lanes.map((lane) => lane.marks).join("");
  const states = Object.keys(LETTERS).filter((letter) => letter !== "-" && cells.includes(letter));
  const given = Object.keys(MARKS).filter((mark) => marks.includes(mark));
  if (states.length === 0) return null;
  return (
    <ul className="legend" aria-label="What the cells mean">
      {states.map((letter) => (
        <li key={letter}>
          <span className="key" aria-hidden="true">
            <span className="cell" data-s={letter} />
          </span>
          {LETTERS[letter]}
        </li>
      ))}
      {given.map((mark) => (
        <li key={mark}>
          <span className="key" aria-hidden="true">
            <span className="cell" data-m={mark} />
          </span>
          {MARKS[mark]}
        </li>
      ))}
    </ul>
  );
}
