/** Bundles the program once before the tests that start it, so that no start of theirs does. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export default function setup(): void {
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/bundle.ts')]);
}
