/**
 * How commands show what the platform answers. On a terminal: aligned columns, colours, times from now. Elsewhere:
 * one record a line, fields apart by tabs, times as they are, so that other programs can read it.
 */
import { styleText } from 'node:util';
import type { Io, Output } from './io.ts';

type Style = Parameters<typeof styleText>[0];

/** The colours of states, as the console has them. */
const stateStyles: Readonly<Record<string, Style>> = {
  completed: 'green',
  approved: 'green',
  active: 'cyan',
  waiting: 'magenta',
  pending: 'yellow',
  queued: 'yellow',
  failed: 'red',
  rejected: 'red',
  expired: 'red',
  ok: 'green',
  warning: 'yellow',
  fault: 'red',
};

export interface Column<Item> {
  readonly title: string;
  readonly of: (item: Item) => unknown;
  readonly as?: 'state' | 'time';
}

type Printing = Pick<Io, 'stdout' | 'stderr' | 'now'>;

/** A list with its header; nothing but the header where it is empty. */
export function printTable<Item>(
  io: Printing,
  items: readonly Item[],
  columns: readonly Column<Item>[],
): void {
  const rows = items.map((item) =>
    columns.map((column) => ({ ...column, text: shown(io, column.of(item), column.as) })),
  );
  if (!io.stdout.isTTY) {
    for (const row of rows) io.stdout.write(`${row.map(({ text }) => text).join('\t')}\n`);
    return;
  }
  if (rows.length === 0) {
    io.stdout.write(`${styled(io.stdout, 'dim', 'none')}\n`);
    return;
  }
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...rows.map((row) => row[i]?.text.length ?? 0)),
  );
  const line = (texts: readonly string[], style: (text: string, i: number) => string) => {
    const cells = texts.map((text, i) => {
      const padding = i === texts.length - 1 ? '' : ' '.repeat((widths[i] ?? 0) - text.length);
      return style(text, i) + padding;
    });
    io.stdout.write(`${cells.join('  ')}\n`);
  };
  const titles = columns.map(({ title }) => title);
  line(titles, (text) => styled(io.stdout, 'dim', text));
  for (const row of rows) {
    line(
      row.map(({ text }) => text),
      (text, i) => (row[i]?.as === 'state' ? state(io.stdout, text) : text),
    );
  }
}

/** One thing: its fields, a line each. */
export function printFields(
  io: Printing,
  fields: Readonly<Record<string, unknown>>,
  { times = [] }: { times?: readonly string[] } = {},
): void {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  const width = Math.max(...given.map(([name]) => name.length));
  for (const [name, value] of given) {
    const text = shown(io, value, times.includes(name) ? 'time' : undefined);
    if (!io.stdout.isTTY) {
      io.stdout.write(`${name}\t${text}\n`);
      continue;
    }
    const label = styled(io.stdout, 'dim', name.padEnd(width));
    io.stdout.write(`${label}  ${name === 'status' ? state(io.stdout, text) : text}\n`);
  }
}

/** JSON for a person on a terminal, with what a terminal obeys or hides written out; one line elsewhere. */
export function printValue({ stdout }: Pick<Io, 'stdout'>, value: unknown): void {
  const json = JSON.stringify(value, null, stdout.isTTY ? 2 : 0) ?? 'null';
  stdout.write(`${stdout.isTTY ? writtenOut(json) : json}\n`);
}

/** JSON escapes the other control characters by itself. */
function writtenOut(json: string): string {
  return json.replace(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (one) => {
    return `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** What is left of a list, for a person; other programs read `total` of `--json`. */
export function printRest(
  { stdout, stderr }: Printing,
  { shownCount, offset, total }: { shownCount: number; offset: number; total: number },
): void {
  const next = offset + shownCount;
  if (!stdout.isTTY || next >= total || shownCount === 0) return;
  stderr.write(`${offset + 1} to ${next} of ${total}; more with --offset ${next}\n`);
}

export function state(output: Output, text: string): string {
  const style = stateStyles[text];
  return style === undefined ? text : styled(output, style, text);
}

export function styled({ hasColors }: Output, style: Style, text: string): string {
  return hasColors ? styleText(style, text, { validateStream: false }) : text;
}

/** Text of the platform without what a terminal would take for a command; line breaks stay. */
export function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is replaced
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}

function shown({ stdout, now }: Printing, value: unknown, as: Column<never>['as']): string {
  if (value === null || value === undefined || value === '') return '-';
  if (as === 'time' && stdout.isTTY && typeof value === 'string') {
    return fromNow(Date.parse(value) - now());
  }
  const text = typeof value === 'object' ? listed(value) : String(value);
  return clean(text).replace(/[\t\n]+/g, ' ');
}

function listed(value: object): string {
  const isWords = Array.isArray(value) && value.every((one) => typeof one === 'string');
  return isWords && value.length > 0 ? value.join(', ') : JSON.stringify(value);
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });

/** For example `3 min. ago`. */
function fromNow(ms: number): string {
  const [unit, length] = units.find(([, size]) => Math.abs(ms) >= size) ?? ['second', 1_000];
  return relative.format(Math.trunc(ms / length), unit);
}
