/** The leases of claimed jobs: renewed, checked, ended, shortened after the clock was set back. */
import { type SqlBool, sql } from 'kysely';
import { createBringForward } from '../../adapters/database/bring-forward.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, idInLocked, isIn } from '../../adapters/database/ids-in.ts';
import { listOf, statement } from '../../adapters/database/statement.ts';
import { claimedColumns, claimOf, inIdOrder } from './jobs.store.ts';

const renew = statement<{
  ids: readonly string[];
  claims: readonly string[];
  lease_until: number;
}>()((db, p, dialect) => {
  const isHeldBy = sql<SqlBool>`status = 'active' and ${isIn(dialect, sql`id || ' ' || epoch`, listOf(p, 'claims'))}`;
  return db
    .updateTable('jobs')
    .set({ due_at: p('lease_until') })
    .where(idInLocked(dialect, listOf(p, 'ids'), 'jobs', isHeldBy))
    .returning(['id', 'epoch', 'cancel_requested_at']);
});

/** Extends the leases of claims; returns which of them still hold their jobs, and which are to be cancelled. */
export function renewLeases(
  tx: Transaction,
  claims: readonly { readonly id: string; readonly epoch: number }[],
  leaseUntil: number,
) {
  return tx.all(renew, {
    ids: claims.map(({ id }) => id),
    claims: claims.map(claimOf),
    lease_until: leaseUntil,
  });
}

const expired = statement<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select([...claimedColumns, 'cancel_requested_at', 'begun'])
    .where('status', '=', 'active')
    .where('due_at', '<=', p('now'))
    .orderBy('due_at')
    .limit(p('limit')),
);

/** Active jobs whose lease had ended at `now`. */
export function findExpiredJobs(db: Handle, now: number, limit: number) {
  return db.all(expired, { now, limit });
}

const unbegun = statement<{ ids: readonly string[]; claimed_by: number }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select([...claimedColumns, 'cancel_requested_at', 'begun'])
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('status', '=', sql.lit('active'))
    .where('claimed_by', '=', p('claimed_by'))
    .where('begun', '=', sql<number>`-epoch`),
);

/** Those of the jobs that a process has claimed, and whose beginning is not on record. */
export function findUnbegunJobs(db: Handle, ids: readonly string[], claimedBy: number) {
  return db.all(unbegun, { ids, claimed_by: claimedBy });
}

const begin = statement<{ id: string; epoch: number }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ begun: sql<number>`epoch` })
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active'),
);

/** Records that the code of claims begins. The i-th: whether the claim still holds its job. */
export async function recordBegun(
  tx: Transaction,
  claims: readonly { readonly id: string; readonly epoch: number }[],
): Promise<boolean[]> {
  const inOrder = claims.toSorted(inIdOrder);
  const changes = await tx.changes(begin, inOrder);
  const held = new Set(inOrder.filter((_, i) => (changes[i] ?? 0) > 0));
  return claims.map((one) => held.has(one));
}

/** After the clock was set back. */
export const bringJobsForward = createBringForward({
  name: 'jobs',
  waiting: 'queued',
  claimed: 'active',
  alsoDue: ['run_at'],
  named: sql`epoch = 0 and run_at > created_at`,
});
