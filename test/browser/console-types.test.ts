/** What the console and the client package take from the API's description matches it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = join(import.meta.dirname, '../../scripts/console-types.ts');

test('the types of the console and the operations of the client are those of /openapi.json', async () => {
  const { stderr } = await promisify(execFile)(process.execPath, [program, '--check']);

  expect(stderr).toBe('');
});
