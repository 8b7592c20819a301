/**
 * Data directories of PostgreSQL. Within a run of the tests one of each kind is made, and the others are copies of it,
 * which takes a tenth of the time.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { scratchDirectory } from './scratch.ts';
import { type Account, serverDirectory } from './supervised.ts';
import { waitFor } from './wait-for.ts';

const run = promisify(execFile);

/** Makes `data` with `fill`, or as a copy of what another call with this name has filled. */
export async function copiedOfFirst(
  name: string,
  data: string,
  account: Account,
  fill: (data: string, account: Account) => Promise<void>,
): Promise<void> {
  const scratch = scratchDirectory();
  if (scratch === undefined) {
    await fill(data, account);
    return;
  }
  const first = join(scratch, name);
  await madeOnce(first, async () => {
    const mine = serverDirectory('first', account);
    await fill(join(mine, 'data'), account);
    renameSync(mine, first);
  });
  await copyDirectory(join(first, 'data'), data, account);
}

/** Has one process make what is not there yet, while the others wait. */
async function madeOnce(path: string, make: () => Promise<void>): Promise<void> {
  const lock = `${path}.lock`;
  await waitFor(
    async () => {
      if (existsSync(path)) return true;
      try {
        mkdirSync(lock);
      } catch {
        return false;
      }
      try {
        if (!existsSync(path)) await make();
      } finally {
        rmSync(lock, { recursive: true });
      }
      return true;
    },
    { describe: `${path} is made`, deadlineMs: 60_000 },
  );
}

/** Copies a directory that belongs to `account`. */
export async function copyDirectory(from: string, to: string, account: Account): Promise<void> {
  await run('cp', ['-a', from, to], { cwd: '/', ...(account ?? {}) });
}

/** Makes an empty database cluster. */
export async function initialize(initdb: string, data: string, account: Account): Promise<void> {
  await run(
    initdb,
    [
      '--pgdata',
      data,
      '--username=postgres',
      '--auth=trust',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
      '--no-instructions',
    ],
    { cwd: '/', ...(account ?? {}) },
  );
}
