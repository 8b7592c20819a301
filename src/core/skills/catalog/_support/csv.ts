/** Parses and writes CSV (RFC 4180, with any single character as delimiter). */

import { SkillError } from '../../definition.ts';

export type Cell = string | number | boolean | null;

export interface CsvTable {
  /** Names of the columns, distinct and not empty; null when the text has no header. */
  readonly columns: readonly string[] | null;
  readonly rows: readonly (readonly Cell[])[];
  readonly delimiter: string;
  /** Whether there are more rows than requested. */
  readonly truncated: boolean;
}

export interface CsvOptions {
  readonly header: boolean;
  /** One character; detected from the first lines when left out. */
  readonly delimiter?: string;
  readonly inferTypes: boolean;
  readonly rowsMax: number;
}

const delimiters = [',', ';', '\t', '|'] as const;
const sampleLines = 10;
/** Most columns: objects without common names need a column for each name. */
const cellsMax = 1_000_000;
/** Numbers as JSON writes them; 007 and 1,5 are texts. */
const numberPattern = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$/;

/** Parses CSV. Throws a SkillError, not retryable, that names the line. */
export async function readCsv(text: string, options: CsvOptions): Promise<CsvTable> {
  const { CsvError } = await import('csv-parse');
  const { parse } = await import('csv-parse/sync');
  const delimiter = options.delimiter ?? detectDelimiter(text);
  const headRows = options.header ? 1 : 0;
  let records: string[][];
  try {
    records = parse(text, {
      delimiter,
      bom: true,
      skip_empty_lines: true,
      // One more row than requested shows whether there are more.
      to: options.rowsMax + headRows + 1,
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new SkillError(faultOf(error), { retryable: false });
  }
  const columns = options.header ? columnNames(records[0] ?? []) : null;
  const rows = records.slice(headRows, headRows + options.rowsMax);
  return {
    columns,
    rows: options.inferTypes ? typed(rows) : rows,
    delimiter,
    truncated: records.length > headRows + options.rowsMax,
  };
}

/** A row as an object; without a header it stays an array. */
export function rowValue(
  columns: readonly string[] | null,
  row: readonly Cell[],
): readonly Cell[] | Record<string, Cell> {
  if (columns === null) return row;
  return Object.fromEntries(columns.map((column, i) => [column, row[i] ?? null]));
}

/**
 * Writes a list of objects (a header of all their names), of lists, or of single values as CSV.
 * Fails with an Error for anything else.
 */
export async function writeCsv(value: unknown): Promise<string> {
  const { stringify } = await import('csv-stringify/sync');
  return stringify(table(value), { cast: { boolean: String } });
}

function table(value: unknown): unknown[][] {
  const items = Array.isArray(value) ? value : [value];
  if (items.every(Array.isArray)) return items;
  if (items.every(isRecord)) {
    const columns = [...new Set(items.flatMap((item) => Object.keys(item)))];
    if (columns.length * items.length > cellsMax) {
      const size = `${items.length} rows of ${columns.length} columns`;
      throw new Error(`The CSV would have ${size}; more than ${cellsMax} cells are not written`);
    }
    return [columns, ...items.map((item) => columns.map((column) => own(item, column)))];
  }
  if (Array.isArray(value) && !items.some((item) => item !== null && typeof item === 'object')) {
    return [['value'], ...items.map((item) => [item])];
  }
  throw new Error('Only a list of objects, of lists or of single values can be written as CSV');
}

function own(record: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** The delimiter that occurs in each of the first lines, and most often. */
function detectDelimiter(text: string): string {
  const lines = firstLines(text);
  const scored = delimiters.map((delimiter) => {
    const counts = lines.map((line) => line.split(delimiter).length - 1);
    return { delimiter, score: Math.min(...counts), total: counts.reduce((a, b) => a + b, 0) };
  });
  scored.sort((a, b) => b.score - a.score || b.total - a.total);
  return scored[0]?.delimiter ?? ',';
}

/** The first lines without quoted values, which may contain delimiters. */
function firstLines(text: string): string[] {
  const unquoted = text.slice(0, 64 * 1024).replace(/"[^"]*"/g, '');
  const lines = unquoted.split(/\r?\n/, sampleLines).filter((line) => line.trim() !== '');
  return lines.length > 0 ? lines : [''];
}

function columnNames(cells: readonly string[]): string[] {
  const taken = new Set<string>();
  /** The number that the next column of a name gets: a hundred thousand may have the same one. */
  const next = new Map<string, number>();
  return cells.map((cell, i) => {
    const wanted = cell.trim() || `column_${i + 1}`;
    let name = wanted;
    let n = next.get(wanted) ?? 2;
    while (taken.has(name)) name = `${wanted}_${n++}`;
    next.set(wanted, n);
    taken.add(name);
    return name;
  });
}

/** A column becomes numbers or booleans when all its values are; its empty cells become null. */
function typed(rows: readonly (readonly string[])[]): Cell[][] {
  const width = rows[0]?.length ?? 0;
  const readers = Array.from({ length: width }, (_, column) =>
    readerFor(rows.map((row) => row[column] ?? '').filter((cell) => cell !== '')),
  );
  return rows.map((row) => row.map((cell, column) => (readers[column] ?? asText)(cell)));
}

function readerFor(cells: readonly string[]): (cell: string) => Cell {
  if (cells.length === 0) return asText;
  if (cells.every(isExactNumber)) return (cell) => (cell === '' ? null : Number(cell));
  if (cells.every((cell) => /^(true|false)$/i.test(cell))) {
    return (cell) => (cell === '' ? null : cell.toLowerCase() === 'true');
  }
  return asText;
}

/** Whether the text is a number without loss of digits: identifiers of 20 digits stay text. */
function isExactNumber(cell: string): boolean {
  return (
    numberPattern.test(cell) &&
    Number.isFinite(Number(cell)) &&
    cell.replace(/\D/g, '').length <= 15
  );
}

function asText(cell: string): Cell {
  return cell;
}

function faultOf(error: { code: string; message: string; lines?: unknown }): string {
  const line = `line ${String(error.lines ?? '?')}`;
  switch (error.code) {
    case 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH':
      return `CSV: ${line} does not have as many values as the lines before`;
    case 'CSV_QUOTE_NOT_CLOSED':
      return `CSV: a quoted value has no end; the text ends in ${line}`;
    case 'INVALID_OPENING_QUOTE':
      return `CSV: ${line} has a quote in the middle of a value; quote the value and double it`;
    case 'CSV_INVALID_CLOSING_QUOTE':
      return `CSV: ${line} has text behind a closing quote`;
    default:
      return `CSV: ${error.message}`;
  }
}
