import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startProcess } from './process.ts';

test('a platform that ends before it is ready is not waited for, and the error has what it said', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-process-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));

  const started = startProcess(directory, { PORT: 'none' });

  await expect(started).rejects.toThrow(/^The platform ended with code 1; it said: .*PORT="none"/s);
});
