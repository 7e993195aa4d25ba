import { columnName, type Columns } from "./columns";
import { LETTERS, MARKS, type Lane } from "./states";

/** A cell in words, for those who do not see its colour and shape. */
export function cellText(lane: Lane, columns: Columns, index: number, zone: string): string {
  const letter = lane.cells[index] ?? "-";
  const mark = MARKS[lane.marks[index] ?? "-"];
  const count = lane.multiple[String(index)];
  const several = count === undefined ? "" : `, the worst of ${count} runs`;
  return `${columnName(columns, index, zone)}: ${LETTERS[letter] ?? letter}${several}${mark === undefined ? "" : `, ${mark}`}`;
}
