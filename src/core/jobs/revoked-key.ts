/**
 * Ends the accepted jobs of a revoked API key: waiting ones are cancelled, with the reason. Active ones go
 * on, without models and tools, unless the administrator cancels them too.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { Context } from '../context/context.ts';
import { findUnendedOfKey, requestCancellation } from './jobs.store.ts';
import type { RunningJobs } from './runs/running-jobs.ts';
import type { Settler } from './settle.ts';
import type { JobError } from './states.ts';

/** Jobs ended in one transaction. */
const togetherMax = 200;

const keyRevokedError: JobError = {
  code: 'cancelled',
  message: 'The API key that the job was accepted with was revoked while the job waited',
};

/** After a key was revoked: the time until all processes refuse it. */
const lateJobsMs = 2_000;

interface KeyJobsParts {
  readonly settler: Settler;
  readonly running: RunningJobs;
}

/** Ends the jobs of a revoked key now, and those that another process accepts before it reads that the key was revoked. */
export async function endJobsOfKey(
  context: Context,
  parts: KeyJobsParts,
  keyId: string,
  options: { cancelActive: boolean },
): Promise<void> {
  await endUnendedOfKey(context, parts, keyId, options);
  setTimeout(() => {
    endUnendedOfKey(context, parts, keyId, options).catch((err) =>
      context.log.warn({ err, api_key_id: keyId }, 'jobs of a revoked key may go on'),
    );
  }, lateJobsMs).unref();
}

/** Ends the jobs of a revoked key that wait; with `cancelActive` it stops those that run, too. */
export async function endUnendedOfKey(
  { database, clock }: Context,
  { settler, running }: KeyJobsParts,
  keyId: string,
  { cancelActive }: { cancelActive: boolean },
): Promise<void> {
  for (const status of ['queued', 'waiting'] as const) {
    await forEachBatch(database, keyId, status, (ids) =>
      database.write((tx) => settler.cancelUnclaimed(tx, ids, keyRevokedError)),
    );
  }
  if (!cancelActive) return;
  await forEachBatch(database, keyId, 'active', async (ids) => {
    await database.write(async (tx) => {
      for (const id of ids) await requestCancellation(tx, { id, now: clock.now() });
    });
    for (const id of ids) running.cancel(id);
  });
}

async function forEachBatch(
  { read }: Database,
  keyId: string,
  status: 'queued' | 'active' | 'waiting',
  end: (ids: readonly string[]) => Promise<unknown>,
): Promise<void> {
  for (let after = ''; ; ) {
    const page = { api_key_id: keyId, status, after, limit: togetherMax };
    const rows = await findUnendedOfKey(read, page);
    const last = rows.at(-1);
    if (last === undefined) return;
    await end(rows.map(({ id }) => id));
    after = last.id;
  }
}
