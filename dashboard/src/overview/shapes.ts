// A lane of many columns as paths, one a state: each state has a shape of its own besides its colour.

export interface Shape {
  name: string;
  path: string;
}

type Draw = (x: number, width: number, height: number) => string;

function box(x: number, y: number, width: number, height: number): string {
  return `M${x} ${y}h${width}v${height}h${-width}z`;
}

const SHAPES: Record<string, Draw> = {
  d: (x, w, h) => box(x + 1, 2, w - 2, h - 4),
  r: (x, w, h) => `M${x + 1} 2L${x + w - 1} ${h / 2}L${x + 1} ${h - 2}z`,
  w: (x, w, h) => box(x + 1, 2, w - 2, 3) + box(x + 1, h - 5, w - 2, 3),
  f: (x, w, h) => box(x + 1, 0, w - 2, h),
  h: (x, w, h) => box(x + 1, 1, (w - 4) / 2, h - 2) + box(x + 3 + (w - 4) / 2, 1, (w - 4) / 2, h - 2),
  m: (x, w, h) => `${box(x + 1, 1, w - 2, h - 2)}M${x + 3} 3v${h - 6}h${w - 6}v${6 - h}z`,
  x: (x, w, h) => `M${x + w - 2} 3l1 1L${x + 2} ${h - 3}l-1 -1z`,
  o: (x, w, h) => `M${x + w / 2} ${h / 2 - 3}l3 3l-3 3l-3 -3z`,
};
const NAMES: Record<string, string> = {
  d: "done",
  r: "running",
  w: "waiting",
  f: "failed",
  h: "held",
  m: "missed",
  x: "excluded",
  o: "dry",
};

export function shapesOf(cells: string, marks: string, width: number, height: number): Shape[] {
  const paths = new Map<string, string>();
  const add = (name: string, path: string) => paths.set(name, (paths.get(name) ?? "") + path);
  for (let index = 0; index < cells.length; index += 1) {
    const letter = cells[index] ?? "-";
    const draw = SHAPES[letter];
    const name = NAMES[letter];
    if (draw !== undefined && name !== undefined) add(name, draw(index * width, width, height));
    const mark = marks[index];
    if (mark === "w" || mark === "b") {
      const right = (index + 1) * width;
      add(mark === "b" ? "mark-breached" : "mark-warned", `M${right - 6} 0h6v6z`);
    }
  }
  return [...paths].map(([name, path]) => ({ name, path }));
}
