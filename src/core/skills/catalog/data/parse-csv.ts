/** Parses CSV. A long text is parsed in a sandboxed process, so that the executor is not blocked. */

import { defineSkill, type SkillOutput } from '../../definition.ts';
import { type Cell, readCsv, rowValue } from '../_support/csv.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { flag, integer, objectWith, type Static } from '../_support/schemas.ts';

/** A text of this length is parsed in a few milliseconds, faster than a process starts. */
const shortLength = 16_384;
const parsing = { module: import.meta.url, function: 'parse', timeoutMs: 10_000 };
/** An output may have 1 MiB; rows beyond this are left out. */
const rowsBytesMax = 900_000;

const parameters = objectWith(['text'], {
  text: { type: 'string', maxLength: 2_000_000, description: 'CSV text.' },
  header: {
    type: 'boolean',
    default: true,
    description: 'Whether the first row names the columns.',
  },
  delimiter: {
    type: 'string',
    minLength: 1,
    maxLength: 1,
    pattern: '^[^"\\r\\n]$',
    description: 'Character between values; found out when left out (comma, ;, tab or |).',
  },
  infer_types: flag('Whether columns of numbers or of true and false are read as such.'),
  max_rows: integer({ minimum: 1, maximum: 100_000, default: 10_000 }, 'Rows to return at most.'),
});
const output = objectWith('all', {
  columns: {
    type: ['array', 'null'],
    items: { type: 'string' },
    description: 'Names of the columns, made distinct; null without a header.',
  },
  rows: {
    type: 'array',
    items: { type: ['object', 'array'] },
    description: 'Objects by column name, or lists without a header.',
  },
  row_count: { type: 'integer', description: 'Rows returned.' },
  delimiter: { type: 'string', description: 'Character between values.' },
  truncated: { type: 'boolean', description: 'Whether there are more rows than returned.' },
});
type Input = Static<typeof parameters>;
type Output = SkillOutput<typeof output>;

export default defineSkill({
  category: 'data',
  name: 'parse-csv',
  version: 'v1.0',
  displayName: 'Parse CSV',
  description:
    'Turns CSV text into rows: objects by column name, or lists where there is no header. Finds ' +
    'the delimiter by itself, and numbers and booleans when asked to.',
  parameters,
  output,
  examples: [
    {
      input: { text: 'name;born\nAda;1815\n"Hopper; Grace";1906\n', infer_types: true },
      output: {
        columns: ['name', 'born'],
        rows: [
          { name: 'Ada', born: 1815 },
          { name: 'Hopper; Grace', born: 1906 },
        ],
        row_count: 2,
        delimiter: ';',
        truncated: false,
      },
    },
  ],

  run(input, { signal }) {
    if (input.text.length <= shortLength) return parse(input);
    return inSandbox<Output>({ ...parsing, input, signal });
  },
});

/** Parses the text. Runs in the sandbox for a long text. */
export async function parse(input: Input): Promise<Output> {
  const table = await readCsv(input.text, {
    header: input.header ?? true,
    ...(input.delimiter === undefined ? {} : { delimiter: input.delimiter }),
    inferTypes: input.infer_types ?? false,
    rowsMax: input.max_rows ?? 10_000,
  });
  const { columns, delimiter } = table;
  const rows = fittingRows(columns, table.rows);
  return {
    columns,
    rows,
    row_count: rows.length,
    delimiter,
    truncated: table.truncated || rows.length < table.rows.length,
  };
}

/** The first rows, as many as an output can hold besides the column names. */
function fittingRows(
  columns: readonly string[] | null,
  rows: readonly (readonly Cell[])[],
): Output['rows'] {
  const fitting: Output['rows'][number][] = [];
  let room = rowsBytesMax - Buffer.byteLength(JSON.stringify(columns));
  for (const row of rows) {
    const value = rowValue(columns, row);
    room -= Buffer.byteLength(JSON.stringify(value)) + 1;
    if (room < 0) break;
    fitting.push(value);
  }
  return fitting;
}
