import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runBuild } from './files.ts';

test('the error of a build that fails has its output once, as plain text', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skillwright-build-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const script = join(folder, 'build.js');
  writeFileSync(
    script,
    "console.error('\\u001b[31mNo such module: x\\u001b[39m'); process.exit(3);",
  );

  const error: unknown = await runBuild([script], folder).catch((reason: unknown) => reason);

  expect(error).toEqual(new Error('The build ended with 3: No such module: x'));
  expect(Object.keys(error as Error)).toEqual([]);
  expect(error).not.toHaveProperty('cause');
});
