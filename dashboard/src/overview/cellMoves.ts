// Where the focus goes from cell to cell: only what has something to open can have it.

/** The next cell with something in it, to the left (-1) or the right (1) of a column; null when there is none. */
export function beside(cells: string, index: number, step: -1 | 1): number | null {
  for (let column = index + step; column >= 0 && column < cells.length; column += step) {
    if (cells[column] !== "-") return column;
  }
  return null;
}

/** The cell with something in it that is nearest to a column; null when the lane is empty. */
export function nearest(cells: string, index: number): number | null {
  for (let away = 0; away < cells.length; away += 1) {
    for (const column of [index - away, index + away]) {
      if (column >= 0 && column < cells.length && cells[column] !== "-") return column;
    }
  }
  return null;
}
