/** Compares two texts. Runs in a sandboxed process, because texts without common lines take long. */

import { defineSkill } from '../../definition.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { objectWith } from '../_support/schemas.ts';

interface Input {
  readonly before: string;
  readonly after: string;
  readonly before_name?: string;
  readonly after_name?: string;
  readonly context_lines?: number;
  readonly ignore_whitespace?: boolean;
}

interface Output {
  readonly patch: string;
  readonly identical: boolean;
  readonly added_lines: number;
  readonly removed_lines: number;
  readonly hunks: number;
}

const timeoutMs = 10_000;
const textLengthMax = 2_000_000;

export default defineSkill<Input, Output>({
  category: 'text',
  name: 'diff',
  version: 'v1.0',
  displayName: 'Diff',
  description:
    'Compares two texts line by line and returns a unified patch, which `patch` and `git apply` ' +
    'understand, with the numbers of added and removed lines.',
  parameters: objectWith(['before', 'after'], {
    before: { type: 'string', maxLength: textLengthMax, description: 'The old text.' },
    after: { type: 'string', maxLength: textLengthMax, description: 'The new text.' },
    before_name: nameOf('old'),
    after_name: nameOf('new'),
    context_lines: {
      type: 'integer',
      minimum: 0,
      maximum: 100,
      default: 3,
      description: 'Unchanged lines to show around each change.',
    },
    ignore_whitespace: {
      type: 'boolean',
      default: false,
      description: 'Whether white space at the ends of lines is no difference.',
    },
  }),
  output: objectWith('all', {
    patch: { type: 'string', description: 'Unified patch; empty when nothing changed.' },
    identical: { type: 'boolean', description: 'Whether nothing changed.' },
    added_lines: { type: 'integer', description: 'Lines that only the new text has.' },
    removed_lines: { type: 'integer', description: 'Lines that only the old text has.' },
    hunks: { type: 'integer', description: 'Places of change in the patch.' },
  }),
  examples: [
    {
      input: { before: 'one\ntwo\n', after: 'one\nthree\n', before_name: 'a', after_name: 'b' },
      output: {
        patch: '--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n',
        identical: false,
        added_lines: 1,
        removed_lines: 1,
        hunks: 1,
      },
    },
  ],

  run: (input, ctx) =>
    inSandbox<Output>({
      module: import.meta.url,
      function: 'compare',
      input,
      signal: ctx.signal,
      timeoutMs,
    }),
});

/** Compares the two texts, or gives up after `giveUpMs`. Runs in the sandbox. */
export async function compare(input: Input, giveUpMs = timeoutMs): Promise<Output> {
  const { FILE_HEADERS_ONLY, formatPatch, structuredPatch } = await import('diff');
  const changes = structuredPatch(
    input.before_name ?? 'before',
    input.after_name ?? 'after',
    input.before,
    input.after,
    undefined,
    undefined,
    {
      context: input.context_lines ?? 3,
      ignoreWhitespace: input.ignore_whitespace ?? false,
      timeout: giveUpMs,
    },
  );
  if (changes === undefined) throw new Error('The texts are too different to compare in time');
  const lines = changes.hunks.flatMap((hunk) => hunk.lines);
  const identical = changes.hunks.length === 0;
  return {
    patch: identical ? '' : formatPatch(changes, FILE_HEADERS_ONLY),
    identical,
    added_lines: lines.filter((line) => line.startsWith('+')).length,
    removed_lines: lines.filter((line) => line.startsWith('-')).length,
    hunks: changes.hunks.length,
  };
}

function nameOf(which: string) {
  return {
    type: 'string',
    minLength: 1,
    maxLength: 200,
    pattern: '^[^\\r\\n\\t]*$',
    description: `Name of the ${which} text in the head of the patch.`,
  };
}
