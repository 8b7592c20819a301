/**
 * The queries on works that were passed over: jobs and calls which lacked a place at another gate when their turn came. Each of
 * their gates has a row among the places, whose number is that of no job and no call: -1 for a job, else -1 less that of the call.
 */
import { sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../../adapters/database/statement.ts';
import { heldColumns, waitsForTurn } from './held-jobs.store.ts';

/** A job, whose `n` is 0, or its call with the number `n`. */
interface Work {
  readonly job_id: string;
  readonly n: number;
}

const passedOver = sql.lit(-2);

/** Those that a gate has passed over before one id, or after the other, the first one first. */
export const listPassedOver = allRows<
  { gate: string; before: string; after: string; limit: number },
  Transaction
>()((db, p) =>
  db
    .selectFrom('places')
    .select(['job_id', 'organization_id', sql<number>`-1 - n`.as('n')])
    .where('gate', '=', p('gate'))
    .where('is_held', '=', passedOver)
    // Ids of later on are of before the clock was set back.
    .where(sql<boolean>`(since < ${p('before')} or since > ${p('after')})`)
    .orderBy('since')
    .orderBy('job_id')
    .limit(p('limit')),
);

/** Records that gates have passed over a work; a work that is recorded keeps its rank. */
export async function recordPassedOver(
  tx: Transaction,
  { job_id, n }: Work,
  row: {
    readonly gates: readonly string[];
    readonly organization_id: string;
    readonly since: string;
  },
): Promise<void> {
  const { gates, organization_id, since } = row;
  await tx.kysely
    .insertInto('places')
    .values(gates.map((gate) => ({ gate, job_id, n: -1 - n, organization_id, is_held: -2, since })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

const forget = statement<{ ids: readonly string[]; n: number }>()((db, p, dialect) =>
  db
    .deleteFrom('places')
    .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids')))
    .where('n', '=', sql<number>`-1 - ${p('n')}`)
    .where('is_held', '=', passedOver),
);

/** Forgets that jobs, or their calls with the number `n`, were passed over. */
export function forgetPassedOver(
  tx: Transaction,
  ids: readonly string[],
  n: number,
): Promise<void> {
  return tx.each(forget, [{ ids, n }]);
}

/** A run with a place at one of the gates `held` that waits at another gate for the call of a skill. */
export const findCallingHolder = firstRow<{ gate: string; held: readonly string[] }, Transaction>()(
  (db, p, dialect) =>
    db
      .selectFrom('places as call')
      .innerJoin('places as own', 'own.job_id', 'call.job_id')
      .select('own.job_id')
      .where('call.gate', '=', p('gate'))
      .where('call.is_held', '=', sql.lit(0))
      .where('own.is_held', '=', sql.lit(1))
      .where(isIn(dialect, sql.ref('own.gate'), listOf(p, 'held')))
      .limit(1),
);

/** A job that a gate holds; undefined where none does. */
export const findHeldJob = firstRow<{ id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('jobs')
    .select([...heldColumns, 'held_by'])
    .where('id', '=', p('id'))
    .where('held_by', 'is not', null)
    .where(waitsForTurn),
);
