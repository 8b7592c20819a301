/** Data as lines of a table that one can read without knowing JSON. No I/O. */

export interface FieldRow {
  /** Where it is: unique among the rows. */
  readonly path: string;
  /** How deep it lies within others, from 0. */
  readonly depth: number;
  /** Its name, or its number in a list. */
  readonly name: string;
  /** Null where the rows below are its content. */
  readonly text: string | null;
  /** Whether the text is not of the data: that something is empty. */
  readonly isNote: boolean;
}

/** What lies deeper is shown as JSON in one line. */
const depthMax = 6;
/** A list of short words is shown in one line of at most this many characters. */
const lineMax = 80;

/** The members of an object or the entries of a list, each with what is within it below. */
export function fieldRows(value: unknown): FieldRow[] {
  const entries = entriesOf(value);
  if (entries === null) return [leaf('', '', 0, value)];
  return entries.flatMap(([name, member]) => rowsOf(name, name, 0, member));
}

function rowsOf(path: string, name: string, depth: number, value: unknown): FieldRow[] {
  const entries = entriesOf(value);
  const words = wordsOf(value);
  if (entries === null || entries.length === 0 || words !== null || depth >= depthMax) {
    return [leaf(path, name, depth, words ?? value)];
  }
  return [
    { path, depth, name, text: null, isNote: false },
    ...entries.flatMap(([inner, member]) =>
      rowsOf(JSON.stringify([path, inner]), inner, depth + 1, member),
    ),
  ];
}

function leaf(path: string, name: string, depth: number, value: unknown): FieldRow {
  const note = noteOf(value);
  const text = note ?? (typeof value === 'string' ? value : JSON.stringify(value));
  return { path, depth, name, text, isNote: note !== null };
}

function noteOf(value: unknown): string | null {
  if (value === null || value === undefined) return 'none';
  if (value === '') return 'empty';
  const entries = entriesOf(value);
  return entries?.length === 0 ? 'nothing' : null;
}

/** In the order of the data; entries of a list count from 1. */
function entriesOf(value: unknown): [string, unknown][] | null {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return value.map((one, i) => [`${i + 1}`, one]);
  return Object.entries(value);
}

/** The words of a short list of words or numbers, in one line. */
function wordsOf(value: unknown): string | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const isPlain = value.every(
    (one) => typeof one === 'number' || (typeof one === 'string' && /^[^,\n]+$/.test(one)),
  );
  const line = isPlain ? value.join(', ') : '';
  return isPlain && line.length <= lineMax ? line : null;
}
