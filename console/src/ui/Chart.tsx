/** Numbers over time, with a table for screen readers. */
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import { classes } from './classes.ts';
import { countText } from './Time.tsx';

export interface Series {
  readonly name: string;
  /** A colour of styles.css: `good`, `bad`, `accent`, … */
  readonly colour: string;
  readonly values: readonly (number | null)[];
  /** Bars stand upon those of the series that follow; a line is filled down to the axis. */
  readonly look?: 'bars' | 'line';
  /** The total, shown until the pointer is on a value; by default the last value. */
  readonly summary?: number | null;
}

const height = 180;

function cssColour(name: string): string {
  // Canvas knows oklch, but not a name of a style sheet.
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Changes when the page turns dark or light. */
function useTheme(): boolean {
  const [isDark, setDark] = useState(() => document.documentElement.classList.contains('dark'));
  useEffect(() => {
    const observer = new MutationObserver(() =>
      setDark(document.documentElement.classList.contains('dark')),
    );
    observer.observe(document.documentElement, { attributeFilter: ['class'] });
    return () => observer.disconnect();
  }, []);
  return isDark;
}

/** `times` are seconds since the epoch, one for each value; they are shown in UTC, as everywhere. */
export function Chart({
  label,
  times,
  series,
  format = countText,
  steps,
}: {
  label: string;
  times: readonly number[];
  series: readonly Series[];
  format?: (value: number) => string;
  /** Between the lines of the grid, the smallest first, where the unit has others than 1, 2 and 5. */
  steps?: readonly number[];
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = useTheme();
  const shape = series.map(({ name, colour, look }) => `${name}/${colour}/${look}`).join();
  const data = [times, ...heights(series)] as unknown as uPlot.AlignedData;
  const latest = useRef({ data, series, format, steps });
  latest.current = { data, series, format, steps };

  // Recreated only when its shape changes; new numbers update the existing chart.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape and the theme stand for the rest
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const now = latest.current;
    const axis = {
      stroke: cssColour('muted'),
      grid: { stroke: cssColour('line'), width: 1 },
      ticks: { show: false },
      font: '11px Inter Variable, sans-serif',
    };
    const bars = uPlot.paths.bars?.({ size: [0.75, 24], radius: 0.15 });
    const made = new uPlot(
      {
        width: element.clientWidth,
        height,
        padding: [10, 8, 0, 0],
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
        legend: { show: false },
        cursor: { y: false, points: { size: 6 } },
        scales: {
          x: { time: true, range: (_u, min, max) => around(min, max, now) },
          y: { range: (_u, _min, max) => [0, Math.max(1, max * 1.1)] },
        },
        series: [
          {},
          ...now.series.map(({ name, colour, look }) => ({
            label: name,
            stroke: cssColour(colour),
            width: look === 'bars' ? 0 : 1.5,
            fill:
              look === 'bars'
                ? cssColour(colour)
                : `color-mix(in oklch, ${cssColour(colour)} 14%, transparent)`,
            ...(look === 'bars' && bars ? { paths: bars } : {}),
            points: { show: false },
            spanGaps: false,
          })),
        ],
        axes: [
          { ...axis, size: 26, grid: { show: false }, values: (_u, ticks) => ticks.map(timeText) },
          {
            ...axis,
            size: (_u, texts) => axisWidth(texts),
            ...(now.steps === undefined ? {} : { incrs: [...now.steps] }),
            values: (_u, ticks) =>
              ticks.map((value) =>
                Number.isInteger(value) || value > 10 ? now.format(value) : '',
              ),
          },
        ],
        hooks: { setCursor: [(u) => setHovered(u.cursor.idx ?? null)] },
      },
      now.data,
      element,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, isDark]);
  useEffect(() => plot.current?.setData(latest.current.data));

  const [hovered, setHovered] = useState<number | null>(null);
  const at = hovered ?? times.length - 1;
  const summaries = series.map(({ summary, values }) =>
    hovered === null && summary !== undefined ? summary : values[at],
  );
  const isSummed = hovered === null && series.some(({ summary }) => summary !== undefined);
  return (
    <figure aria-label={label} className="min-w-0">
      <figcaption className="mb-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-muted">
        {series.map(({ name, colour }, i) => (
          <span key={name} className="flex items-center gap-1.5 tabular-nums">
            <span className={classes('size-2 rounded-sm', swatches[colour])} aria-hidden />
            {name}
            <strong className="font-medium text-ink">
              {summaries[i] == null ? '–' : format(summaries[i])}
            </strong>
          </span>
        ))}
        <span className="ml-auto tabular-nums">
          {isSummed && times[0] !== undefined && `since ${timeText(times[0])} UTC`}
          {!isSummed && times[at] !== undefined && `${timeText(times[at])} UTC`}
        </span>
      </figcaption>
      <div ref={box} aria-hidden className="min-w-0 overflow-hidden" />
      {/* A table alone would not be as small as its style says. */}
      <div className="sr-only">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">Time (UTC)</th>
              {series.map(({ name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, i) => (
              <tr key={time}>
                <th scope="row">{timeText(time)}</th>
                {series.map(({ name, values }) => (
                  <td key={name}>{values[i] == null ? '–' : format(values[i])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

/** Pixels that the longest of some texts needs beside the axis. */
const axisWidth = (texts: readonly string[] | null): number =>
  Math.max(36, 14 + 6.2 * Math.max(0, ...(texts ?? []).map(({ length }) => length)));

/** With room at both ends for half a bar. */
function around(
  min: number,
  max: number,
  { series, data: [times] }: { series: readonly Series[]; data: uPlot.AlignedData },
): [number, number] {
  const hasBars = series.some(({ look }) => look === 'bars');
  const half = hasBars ? ((times[1] ?? 0) - (times[0] ?? 0)) / 2 : 0;
  return [min - half, max + half];
}

/** How high each value is drawn: bars are drawn the tallest first, so that each shows its own part. */
function heights(series: readonly Series[]): readonly (readonly (number | null)[])[] {
  return series.map(({ look, values }, i) => {
    if (look !== 'bars') return values;
    const below = series.slice(i + 1).filter((other) => other.look === 'bars');
    return values.map(
      (value, at) => (value ?? 0) + below.reduce((sum, other) => sum + (other.values[at] ?? 0), 0),
    );
  });
}

const timeText = (seconds: number) => new Date(seconds * 1000).toISOString().slice(11, 16);

/** Whole class names, so that the style sheet has them. */
const swatches: Record<string, string> = {
  good: 'bg-good',
  bad: 'bg-bad',
  warn: 'bg-warn',
  busy: 'bg-busy',
  accent: 'bg-accent',
  muted: 'bg-muted',
};
