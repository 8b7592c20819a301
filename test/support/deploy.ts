/** What the tests of deploy/ share: its files, and the program's variables and times. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { variables } from '../../src/core/config/variables.ts';

export type Environment = Record<string, string>;

export const root = join(import.meta.dirname, '../..');
/** After SHUTDOWN_GRACE_MS: `stopMarginMs` in src/apps/composition/run.ts. */
export const stopMarginMs = 4_000;
export const graceMs = Number(variables.shutdownGraceMs.default);

/** Whether this machine has a program; with `CI=true` it has to. */
export function hasProgram(name: string): boolean {
  const isThere = spawnSync(name, ['--help'], { stdio: 'ignore' }).error === undefined;
  if (!isThere && process.env['CI'] === 'true') throw new Error(`${name} is not installed`);
  return isThere;
}

/** The text of a file of the repository. */
export function readFile(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Names that neither the table of variables has, with or without `_FILE`, nor a provider of models could have. */
export function unknownIn(names: readonly string[]): string[] {
  const known = new Set<string>(Object.values(variables).map(({ name }) => name));
  return names.filter(
    (name) =>
      !known.has(name.replace(/_FILE$/, '')) && !/^[A-Z][A-Z0-9_]*_(API_KEY|BASE_URL)$/.test(name),
  );
}
