/** Compares two texts. Runs in a sandboxed process, because texts without common lines take long. */

import { defineSkill } from '../../definition.ts';
import { inSandbox } from '../_support/in-sandbox.ts';
import { flag, integer, objectWith, type Static } from '../_support/schemas.ts';

const timeoutMs = 10_000;
const comparison = { module: import.meta.url, function: 'compare', timeoutMs };
const textLengthMax = 2_000_000;

const parameters = objectWith(['before', 'after'], {
  before: { type: 'string', maxLength: textLengthMax, description: 'The old text.' },
  after: { type: 'string', maxLength: textLengthMax, description: 'The new text.' },
  before_name: nameOf('old'),
  after_name: nameOf('new'),
  context_lines: integer(
    { minimum: 0, maximum: 100, default: 3 },
    'Unchanged lines to show around each change.',
  ),
  ignore_whitespace: flag('Whether white space at the ends of lines is no difference.'),
});
const output = objectWith('all', {
  patch: { type: 'string', description: 'Unified patch; empty when nothing changed.' },
  identical: { type: 'boolean', description: 'Whether nothing changed.' },
  added_lines: { type: 'integer', description: 'Lines that only the new text has.' },
  removed_lines: { type: 'integer', description: 'Lines that only the old text has.' },
  hunks: { type: 'integer', description: 'Places of change in the patch.' },
});
type Input = Static<typeof parameters>;
type Output = Static<typeof output>;

export default defineSkill({
  category: 'text',
  name: 'diff',
  version: 'v1.0',
  displayName: 'Diff',
  description:
    'Compares two texts line by line and returns a unified patch, which `patch` and `git apply` ' +
    'understand, with the numbers of added and removed lines.',
  parameters,
  output,
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

  run: (input, { signal }) => inSandbox<Output>({ ...comparison, input, signal }),
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
  } as const;
}
