/** The leases of claimed jobs: renewed, asked for, ended, shortened after the clock was set back. */
import { type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { anyOf, idInLocked, idsParam } from '../database/ids-in.ts';
import { locked } from '../database/locked.ts';
import { statement } from '../database/statement.ts';
import { setBackMs } from '../kernel/set-back.ts';
import { claimedColumns, claimOf } from './jobs.store.ts';

const renew = statement<{ ids: string; claims: string; lease_until: number }>()(
  (db, p, dialect) => {
    const claims =
      dialect === 'sqlite'
        ? sql`in (select value from json_each(${p('claims')}))`
        : sql`= ${anyOf(p('claims'))}`;
    const isHeldBy = sql<SqlBool>`status = 'active' and id || ' ' || epoch ${claims}`;
    return db
      .updateTable('jobs')
      .set({ due_at: p('lease_until') })
      .where(idInLocked(dialect, p('ids'), 'jobs', isHeldBy))
      .returning(['id', 'epoch', 'cancel_requested_at']);
  },
);

/** Extends the leases of claims; tells which of them still hold their jobs, and which are to be cancelled. */
export function renewLeases(
  tx: Transaction,
  claims: readonly { readonly id: string; readonly epoch: number }[],
  leaseUntil: number,
) {
  return tx.all(renew, {
    ids: idsParam(claims.map(({ id }) => id)),
    claims: idsParam(claims.map(claimOf)),
    lease_until: leaseUntil,
  });
}

const held = statement<{ id: string; epoch: number }>()((db, p, dialect) => {
  const query = db
    .selectFrom('jobs')
    .select('id')
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active');
  return locked(dialect, query, (unlocked) => unlocked.forShare());
});

/** Whether a claim still holds its job; if it does, it does until the transaction ends. */
export async function isHeld(
  tx: Transaction,
  { id, epoch }: { readonly id: string; readonly epoch: number },
): Promise<boolean> {
  return (await tx.first(held, { id, epoch })) !== undefined;
}

const expired = statement<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select([...claimedColumns, 'cancel_requested_at'])
    .where('status', '=', 'active')
    .where('due_at', '<=', p('now'))
    .orderBy('due_at')
    .limit(p('limit')),
);

/** Active jobs whose lease had ended at `now`. */
export function findExpiredJobs(db: Handle, now: number, limit: number) {
  return db.all(expired, { now, limit });
}

/** When a queued job was put into the queue, at the latest: no moment after it is recorded. */
const queuedSince = sql<number>`coalesce(started_at, created_at)`;

const bringForward = statement<{ now: number; ahead: number }>()((db, p, dialect) => {
  const least = sql.raw(dialect === 'sqlite' ? 'min' : 'least');
  const at = sql<number>`${least}(run_at, ${p('now')} + run_at - ${queuedSince})`;
  return db
    .updateTable('jobs')
    .set({
      run_at: at,
      due_at: at,
      started_at: sql<number>`case when started_at > ${p('now')} then ${p('now')} else started_at end`,
    })
    .where('status', '=', sql.lit('queued'))
    .where('due_at', '>', p('now'))
    .where(queuedSince, '>', p('ahead'));
});

const shortenLeases = statement<{ lease_until: number; ahead: number }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ due_at: p('lease_until') })
    .where('status', '=', sql.lit('active'))
    .where('due_at', '>', p('ahead')),
);

/**
 * After the clock was set back: a queued job waits no longer than its delay from now on, and a lease is
 * no longer than leases are. What another process has brought forward already stays as it is.
 */
export async function bringJobsForward(
  tx: Transaction,
  now: number,
  leaseMs: number,
): Promise<void> {
  await tx.each(bringForward, [{ now, ahead: now + setBackMs }]);
  const leaseUntil = now + leaseMs;
  await tx.each(shortenLeases, [{ lease_until: leaseUntil, ahead: leaseUntil + setBackMs }]);
}
