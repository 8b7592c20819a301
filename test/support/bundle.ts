/**
 * Bundles the program and builds the console once before the tests that start them, so that no start of
 * theirs does: one that is killed soon would leave it to the next.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const scripts = join(import.meta.dirname, '../../scripts');

export default async function setup(): Promise<void> {
  const build = (name: string) => promisify(execFile)(process.execPath, [join(scripts, name)]);
  await Promise.all([build('bundle.ts'), build('console-build.ts')]);
}
