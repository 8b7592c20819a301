/**
 * Converts one data format into another. Runs in a sandboxed process, because a few lines of YAML can
 * expand to gigabytes or nest without end.
 */

import { defineSkill } from '../../definition.ts';
import { readCsv, rowValue, writeCsv } from '../_support/csv.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { flag, integer, objectWith, type Static } from '../_support/schemas.ts';

const formats = ['json', 'yaml', 'csv'] as const;
const conversion = { module: import.meta.url, function: 'convert', timeoutMs: 10_000 };
const outputBytesMax = 900_000;
const rowsMax = 1_000_000;
/** Most uses of aliases, counted with their content: a bomb has millions. */
const aliasCountMax = 1_000;

const parameters = objectWith(['text', 'from', 'to'], {
  text: { type: 'string', maxLength: 2_000_000, description: 'Text in the format `from`.' },
  from: { type: 'string', enum: formats, description: 'Format of the text.' },
  to: { type: 'string', enum: formats, description: 'Format to return.' },
  indent: integer(
    { minimum: 0, maximum: 8, default: 2 },
    'Spaces of a level; JSON with 0 has one line, YAML has at least 1.',
  ),
  infer_types: flag('Whether columns of numbers or of true and false in CSV are read as such.'),
});
const output = objectWith('all', {
  text: { type: 'string', description: 'Text in the format `to`.' },
});
type Input = Static<typeof parameters>;
type Output = Static<typeof output>;

export default defineSkill({
  category: 'data',
  name: 'convert',
  version: 'v1.0',
  displayName: 'Convert data',
  description:
    'Converts between JSON, YAML and CSV. CSV has a header; its rows are objects on the other ' +
    'side. Nested values become JSON in a cell.',
  parameters,
  output,
  examples: [
    {
      input: { from: 'json', to: 'yaml', text: '{"name":"Ada","born":1815,"tags":["maths"]}' },
      output: { text: 'name: Ada\nborn: 1815\ntags:\n  - maths\n' },
    },
    {
      input: { from: 'csv', to: 'json', text: 'name,born\nAda,1815\n', indent: 0 },
      output: { text: '[{"name":"Ada","born":"1815"}]' },
    },
  ],

  run: (input, { signal }) => inSandbox<Output>({ ...conversion, input, signal }),
});

/** Converts the text. Runs in the sandbox. */
export async function convert(input: Input): Promise<Output> {
  const text = await written(await read(input), input);
  if (Buffer.byteLength(text) > outputBytesMax) throw tooLong();
  if (text.includes('\0')) throw new Error('The converted text has a NUL character');
  return { text };
}

async function read({ text, from, infer_types: inferTypes = false }: Input): Promise<unknown> {
  switch (from) {
    case 'json':
      return readJson(text);
    case 'yaml':
      return readYaml(text);
    case 'csv': {
      const { columns, rows } = await readCsv(text, { header: true, inferTypes, rowsMax });
      // Each row repeats the names, so long names would turn a small text into gigabytes.
      const namesLength = (columns ?? []).reduce((sum, name) => sum + name.length, 0);
      if (namesLength * rows.length > outputBytesMax) throw tooLong();
      return rows.map((row) => rowValue(columns, row));
    }
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    throw new Error(`JSON: ${firstLine(cause)}`, { cause });
  }
}

async function readYaml(text: string): Promise<unknown> {
  const { isScalar, LineCounter, parseDocument, visit } = await import('yaml');
  const lineCounter = new LineCounter();
  try {
    const document = parseDocument(text, {
      // JSON has no binary data and no dates, so they stay text.
      resolveKnownTags: false,
      logLevel: 'error',
      // The library's check takes quadratic time; the one below is linear.
      uniqueKeys: false,
      lineCounter,
    });
    const [fault] = document.errors;
    if (fault !== undefined) throw fault;
    visit(document, {
      Map(_key, { items }) {
        const names = new Set<unknown>();
        for (const { key } of items) {
          if (!isScalar(key)) continue;
          if (names.has(key.value)) {
            const { line, col } = lineCounter.linePos(key.range?.[0] ?? 0);
            throw new Error(`Map keys must be unique at line ${line}, column ${col}`);
          }
          names.add(key.value);
        }
      },
    });
    return document.toJS({ maxAliasCount: aliasCountMax });
  } catch (cause) {
    throw new Error(`YAML: ${firstLine(cause)}`, { cause });
  }
}

async function written(value: unknown, { to, indent = 2 }: Input): Promise<string> {
  switch (to) {
    case 'json':
      return JSON.stringify(value ?? null, refuseInfinite, indent);
    case 'yaml': {
      const { stringify } = await import('yaml');
      return stringify(value ?? null, {
        indent: Math.max(1, indent),
        lineWidth: 0,
        aliasDuplicateObjects: false,
      });
    }
    case 'csv':
      return await writeCsv(value);
  }
}

/** YAML has .inf and .nan; JSON would silently turn them into null. */
function refuseInfinite(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new Error(`JSON cannot hold ${value}`);
  }
  return value;
}

function tooLong(): Error {
  return new Error(`The converted text is longer than ${outputBytesMax} bytes`);
}

function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split('\n')[0] ?? '').replace(/:$/, '');
}
