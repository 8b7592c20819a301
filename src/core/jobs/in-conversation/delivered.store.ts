/** The queries on jobs that steer others: those whose messages a run may take, and those whose message one has taken. */
import { sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { greatestOf } from '../../../adapters/database/extremes.ts';
import { idIn, isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, listOf } from '../../../adapters/database/statement.ts';
import { endedColumns } from '../settle.store.ts';
import { deliveredPrefix } from './conversation-jobs.store.ts';

/** What a job has in common with the one whose run may take its message. */
export const sameColumns = [
  'api_key_id',
  'user_id',
  'for_user',
  'skill_category',
  'skill_name',
  'skill_version',
  'agent_overrides',
] as const;

/** The due jobs that a gate holds, in the order of acceptance. */
export const listSteering = allRows<{ gate: string; now: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select(['id', 'input', ...sameColumns])
    .where('held_by', '=', p('gate'))
    .where('status', '=', sql.lit('queued'))
    .where('run_at', '<=', p('now'))
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', p('now'))]))
    .orderBy('id'),
);
export type SteeringJob = Awaited<ReturnType<typeof listSteering>>[number];

/** Begins those of the jobs that the gate still holds, and has them wait for the job `to`. */
export const deliver = allRows<
  { ids: readonly string[]; gate: string; to: string; held_by: string; now: number },
  Transaction
>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set((eb) => ({
      status: sql.lit('waiting'),
      held_by: p('held_by'),
      delivered_to: p('to'),
      attempt: eb('attempt', '+', 1),
      epoch: eb('epoch', '+', 1),
      started_at: p('now'),
    }))
    .where(idIn(dialect, listOf(p, 'ids')))
    // By its id: no index has this expression.
    .where(sql<boolean>`held_by || '' = ${p('gate')}`)
    .where('status', '=', sql.lit('queued'))
    .returning([...endedColumns, 'input']),
);

/** The jobs that wait for the ends of these, whose runs have taken their messages. */
export const listDelivered = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select(['id', 'delivered_to'])
    .where(isIn(dialect, sql.ref('delivered_to'), listOf(p, 'ids')))
    .where('status', '=', sql.lit('waiting'))
    .orderBy('id'),
);

/** Some jobs that wait for ends that were recorded without theirs, with these ends. */
export const listLeft = allRows<{ limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .leftJoin('jobs as ended', 'ended.id', 'jobs.delivered_to')
    .select(['jobs.id', 'ended.status', 'ended.output', 'ended.error'])
    // The ids behind the names are hexadecimal.
    .where('jobs.held_by', '>', sql.lit(deliveredPrefix))
    .where('jobs.held_by', '<', sql.lit(`${deliveredPrefix}g`))
    .where('jobs.status', '=', sql.lit('waiting'))
    .where('ended.due_at', 'is', null)
    .orderBy('jobs.id')
    .limit(p('limit')),
);

/** Ends those of the jobs that still wait. */
export const endWaiting = allRows<
  {
    ids: readonly string[];
    status: 'completed' | 'failed' | 'cancelled';
    output: string | null;
    error: string | null;
    now: number;
  },
  Transaction
>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({
      status: p('status'),
      output: p('output'),
      error: p('error'),
      // Not before it began, where the clock was set back.
      finished_at: sql<number>`${greatestOf(dialect)}(${p('now')}, coalesce(started_at, 0))`,
      due_at: null,
      held_by: null,
    })
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('status', '=', sql.lit('waiting'))
    .returning([...endedColumns]),
);
