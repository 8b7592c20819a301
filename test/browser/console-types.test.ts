/** The types of the console's client match the API. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = join(import.meta.dirname, '../../scripts/console-types.ts');

test('the types of the console are those of /openapi.json', async () => {
  const { stderr } = await promisify(execFile)(process.execPath, [program, '--check']);

  expect(stderr).toBe('');
});
