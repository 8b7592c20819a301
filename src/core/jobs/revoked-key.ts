/**
 * What becomes of the accepted jobs of an API key that is revoked: jobs that wait end as cancelled, with
 * the reason. Jobs that run go on, without models and tools, unless the administrator cancels them too.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { findUnendedOfKey, requestCancellation } from './jobs.store.ts';
import type { Jobs } from './jobs.ts';
import type { JobError } from './states.ts';

/** Jobs ended in one transaction. */
const togetherMax = 200;

const keyRevokedError: JobError = {
  code: 'cancelled',
  message: 'The API key that the job was accepted with was revoked while the job waited',
};

interface Deps {
  readonly database: Database;
  readonly clock: Clock;
  readonly jobs: Pick<Jobs, 'cancelUnclaimed'>;
  /** Tells the worker that runs the job to stop it. */
  stopRun(jobId: string): void;
}

export type EndJobsOfKey = (keyId: string, options: { cancelActive: boolean }) => Promise<void>;

/** Ends the jobs of a revoked key that wait; with `cancelActive` it stops those that run, too. */
export async function endJobsOfRevokedKey(
  deps: Deps,
  keyId: string,
  { cancelActive }: { cancelActive: boolean },
): Promise<void> {
  const { database, clock, jobs, stopRun } = deps;
  for (const status of ['queued', 'waiting'] as const) {
    await forEachBatch(database, keyId, status, (ids) =>
      database.write((tx) => jobs.cancelUnclaimed(tx, ids, keyRevokedError)),
    );
  }
  if (!cancelActive) return;
  await forEachBatch(database, keyId, 'active', async (ids) => {
    await database.write(async (tx) => {
      for (const id of ids) await requestCancellation(tx, { id, now: clock.now() });
    });
    ids.forEach(stopRun);
  });
}

async function forEachBatch(
  { read }: Database,
  keyId: string,
  status: 'queued' | 'active' | 'waiting',
  end: (ids: readonly string[]) => Promise<unknown>,
): Promise<void> {
  for (let after = ''; ; ) {
    const asked = { api_key_id: keyId, status, after, limit: togetherMax };
    const rows = await findUnendedOfKey(read, asked);
    const last = rows.at(-1);
    if (last === undefined) return;
    await end(rows.map(({ id }) => id));
    after = last.id;
  }
}
