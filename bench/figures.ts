/** What is measured, what is owed, and how the two compare on paper. */

export interface Figure {
  readonly name: string;
  readonly value: number;
  /** How the value reads, with its unit. */
  readonly shown: string;
  readonly floor: number;
  readonly goal: number;
  readonly unit: string;
  readonly better: 'more' | 'less';
}

/** `pass` reaches the goal, `near` the floor. */
function verdict(figure: Figure): 'pass' | 'near' | 'miss' {
  const reaches = (bound: number) =>
    figure.better === 'more' ? figure.value >= bound : figure.value <= bound;
  if (reaches(figure.goal)) return 'pass';
  return reaches(figure.floor) ? 'near' : 'miss';
}

/** The figures as a Markdown table that also reads well in a terminal. */
export function table(figures: readonly Figure[]): string {
  const rows = [
    ['', 'measured', 'floor', 'goal', ''],
    ...figures.map((figure) => [
      figure.name,
      figure.shown,
      `${figure.floor} ${figure.unit}`,
      `${figure.goal} ${figure.unit}`,
      verdict(figure),
    ]),
  ];
  const widths = [0, 1, 2, 3, 4].map((i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = rows;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [line(head), rule, ...body.map(line)].join('\n');
}

/** A figure of which less is better. */
export function lessIsBetter(
  name: string,
  value: number,
  bounds: { floor: number; goal: number; unit: string },
): Figure {
  return { name, value, shown: `${round(value)} ${bounds.unit}`, ...bounds, better: 'less' };
}

/** What something takes, as a multiple of what it takes the ceiling. */
export function ofCeiling(
  name: string,
  ours: number,
  ceiling: number,
  { floor, goal, unit }: { floor: number; goal: number; unit: string },
): Figure {
  const value = ours / ceiling;
  return {
    ...{ name, value, floor, goal, unit: '×', better: 'less' },
    shown: `${round(ours)} ${unit}, ${round(value)} × the ceiling's ${round(ceiling)}`,
  };
}

/** Few digits for large numbers, some for small ones. */
export function round(value: number): number {
  return value >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}
