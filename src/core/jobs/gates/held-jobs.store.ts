/**
 * The jobs that have gates, and those that a gate holds. A transaction leaves out held jobs that others have locked, so that it
 * waits for no job while it has gates locked.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Transaction } from '../../../adapters/database/database.ts';
import { idIn, idInLocked, isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../../adapters/database/statement.ts';
import { hintedColumns } from '../jobs.store.ts';

/** What the gates of a job depend on. */
const workColumns = [
  'organization_id',
  'agent_id',
  'api_key_id',
  'user_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'concurrency_key',
] as const;

/** What a held job needs to be let go. */
export const heldColumns = [...hintedColumns, 'epoch', ...workColumns, 'status'] as const;

/** Whether a job may be held. */
export const waitsForTurn = sql<boolean>`status in ('queued', 'waiting')`;

/** Records that a claim may have places; undefined where it no longer holds its job. */
export const markGated = firstRow<{ id: string; epoch: number }, Transaction>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ gated: 1 })
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', sql.lit('active'))
    .returning('id'),
);

const mark = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ gated: 1 })
    .where(idIn(dialect, listOf(p, 'ids'))),
);

/** The same for jobs that the transaction has locked. */
export function markAllGated(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(mark, [{ ids }]);
}

/** The skill of a job: `category/version/name`. */
const skillOfJob: RawBuilder<string> = sql<string>`skill_category || '/' || skill_version || '/' || skill_name`;

/** Whether a job may have gates: its skill is one of these, or an operator has set one of the limits that `settableLimits` names. */
export function mayHaveGates(dialect: Dialect, skills: RawBuilder<string>): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${isIn(dialect, skillOfJob, skills)} or exists (
    select 1 from gate_settings where name in (
      'pause of organization = ' || organization_id,
      'pause of ' || ${skillOfJob},
      'pause of agent queue = ' || organization_id || ' ' || agent_id,
      'max_concurrency of organization = ' || organization_id,
      'max_concurrency of agent = ' || organization_id || ' ' || agent_id,
      'max_concurrency of API key = ' || api_key_id
    )))`;
}

/** What the gates of jobs that wait for their turn, and are due, depend on. */
export const listGatedWorks = allRows<
  { ids: readonly string[]; skills: readonly string[]; due_by: number },
  Transaction
>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select(['id', ...workColumns, 'gated', 'status'])
    .where(idIn(dialect, listOf(p, 'ids')))
    .where(waitsForTurn)
    .where('held_by', 'is', null)
    .where('due_at', '<=', p('due_by'))
    .where(mayHaveGates(dialect, listOf(p, 'skills'))),
);

/** Holds due jobs at a gate, but those that another transaction has locked or claimed; the ids of those that it holds. */
export const holdAt = allRows<
  { ids: readonly string[]; gate: string; due_by: number },
  Transaction
>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ held_by: p('gate'), gated: 1 })
    .where(
      idInLocked(
        dialect,
        listOf(p, 'ids'),
        'jobs',
        sql<boolean>`${waitsForTurn} and held_by is null and due_at <= ${p('due_by')}`,
        true,
      ),
    )
    .returning('id'),
);

/** Locks those of the jobs that no gate holds and that are not due, but those that others have locked; their ids. */
export const lockPutOff = allRows<{ ids: readonly string[]; due_by: number }, Transaction>()(
  (db, p, dialect) =>
    db
      .updateTable('jobs')
      .set({ gated: 1 })
      .where(
        idInLocked(
          dialect,
          listOf(p, 'ids'),
          'jobs',
          sql<boolean>`${waitsForTurn} and held_by is null and due_at > ${p('due_by')}`,
          true,
        ),
      )
      .returning('id'),
);

/** The next jobs of an organization that a gate holds, of a priority or lower ones, the longest due first. */
export const listHeld = allRows<
  { gate: string; organization_id: string; priority: number; limit: number },
  Transaction
>()((db, p) =>
  db
    .selectFrom('jobs')
    .select(heldColumns)
    .where('held_by', '=', p('gate'))
    .where('organization_id', '=', p('organization_id'))
    .where('priority', '>=', p('priority'))
    .where(waitsForTurn)
    .orderBy('priority')
    .orderBy('due_at')
    .orderBy('id')
    .limit(p('limit')),
);

/**
 * Moves jobs from a gate to another one, or lets them go where `to` is null, but those that another transaction has locked; the
 * ids of those that it moves.
 */
export const moveHeld = allRows<
  { ids: readonly string[]; gate: string; to: string | null },
  Transaction
>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ held_by: p('to') })
    .where(
      idInLocked(
        dialect,
        listOf(p, 'ids'),
        'jobs',
        // By their ids: no index has this expression, and that of the gate has all jobs that wait there.
        sql<boolean>`held_by || '' = ${p('gate')} and ${waitsForTurn}`,
        true,
      ),
    )
    .returning('id'),
);
