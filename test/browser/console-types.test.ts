/** What the client package and the console take from the API's description and the table of events matches it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { areToolsHere } from '../support/tools.ts';

const here = await areToolsHere('scripts/tools/checks');
const program = join(import.meta.dirname, '../../scripts/console-types.ts');

test.skipIf(!here)(
  'the types and operations of the client, and the labels of the console, are those of /openapi.json',
  async () => {
    const { stderr } = await promisify(execFile)(process.execPath, [program, '--check']);

    expect(stderr).toBe('');
  },
);
