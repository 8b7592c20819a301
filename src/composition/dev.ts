/** The platform of an author of skills (`skillwright dev`): a saved file is reloaded at once. */
import { resolve } from 'node:path';
import type { ExecutorPool } from '../executors/pool.ts';
import type { ReloadState, Reloads } from '../skills/reload-turns.ts';
import { watchSkills } from './watch-skills.ts';

/** Starts a pool that is ready to load the skills, and loads them once `begin` is resolved. */
type StartPrepared = (begin: Promise<void>) => Promise<ExecutorPool>;

/** Milliseconds after a load until the next child is prepared, so that it does not slow the first runs. */
const prepareAfterMs = 300;

/** Loads into a child that was started before, so that a load takes the time of the skills alone. */
export function preparedLoads(start: StartPrepared): () => Promise<ExecutorPool> {
  let prepared: ReturnType<typeof prepare> | undefined;
  const prepare = () => {
    const begin = Promise.withResolvers<void>();
    const made = { begin, pool: start(begin.promise) };
    made.pool.catch(() => {
      if (prepared === made) prepared = undefined;
    });
    return made;
  };
  const prepareSoon = () => {
    setTimeout(() => {
      prepared ??= prepare();
    }, prepareAfterMs).unref();
  };
  prepareSoon();
  return async () => {
    const { begin, pool } = prepared ?? prepare();
    prepared = undefined;
    begin.resolve();
    try {
      return await pool;
    } finally {
      prepareSoon();
    }
  };
}

/** Reloads what was saved, and says in the terminal how that went. */
export function reloadOnSave(reloads: Pick<Reloads, 'reloadHere'>, directory: string): void {
  const root = resolve(directory);
  watchSkills(root, (files) => {
    const savedAt = performance.now();
    void reloads.reloadHere('watch').then((state) => {
      const ms = Math.round(performance.now() - savedAt);
      process.stdout.write(`${lineOf(state, files, ms)}\n`);
    });
  });
  process.stdout.write(`  Watching ${root}: a saved skill is reloaded\n`);
}

function lineOf(state: ReloadState, files: readonly string[], ms: number): string {
  const { status, reason, file, line, differences } = state;
  if (status === 'refused') {
    const place = file === null ? '' : `  ${file}${line === null ? '' : `:${line}`}\n`;
    return `✗ not reloaded; the last skills that loaded stay in use\n${place}  ${reason}`;
  }
  const named = files.slice(0, 3).join(', ');
  const more = files.length > 3 ? ` and ${files.length - 3} more` : '';
  const warnings = differences.map(
    ({ skill, difference }) => `\n  warning: ${skill} would break its callers: ${difference}`,
  );
  return `✓ reloaded in ${ms} ms: ${named}${more}${warnings.join('')}`;
}
