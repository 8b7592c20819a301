/** Every query on scheduled jobs. */
import { type Selectable, sql, type Updateable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import { namesAgent } from '../../adapters/database/names-agent.ts';
import { newestOfSkill } from '../../adapters/database/of-skill.ts';
import { allRows, listOf, statement } from '../../adapters/database/statement.ts';
import type {
  ScheduledJobLastRunsTable,
  ScheduledJobsTable,
} from '../../adapters/database/tables.ts';

type LastRun = Omit<ScheduledJobLastRunsTable, 'scheduled_job_id'>;
/** A scheduled job with its last run. */
export type ScheduledJobRow = Selectable<ScheduledJobsTable> & LastRun;
export type ListedScheduledJob = Omit<ScheduledJobRow, 'input'>;

/** The columns of the unique key of scheduled jobs. */
export const uniqueColumns = [
  'organization_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'cron_key',
] as const;

const lastRunColumns = ['last_run_at', 'last_run_status', 'last_run_job_id'] as const;
const listedColumns = [
  ...uniqueColumns,
  'id',
  'api_key_id',
  'cron_expression',
  'timezone',
  'priority',
  'enabled',
  'next_run_at',
  'created_at',
  'updated_at',
] as const;

/** Adds a scheduled job that has not run yet; false if one with the same unique key exists. */
export async function insertScheduledJob(tx: Transaction, row: ScheduledJobRow): Promise<boolean> {
  const rows = await tx.kysely
    .insertInto('scheduled_jobs')
    .values(ownColumns(row))
    .onConflict((conflict) => conflict.columns([...uniqueColumns]).doNothing())
    .returning('id')
    .execute();
  if (rows.length === 0) return false;
  await tx.insert('scheduled_job_last_runs', [{ scheduled_job_id: row.id }]);
  return true;
}

/** The columns of a scheduled job, without those of its last run. */
function ownColumns(row: ScheduledJobRow): Selectable<ScheduledJobsTable> {
  const { last_run_at: _, last_run_status: __, last_run_job_id: ___, ...columns } = row;
  return columns;
}

function withLastRun({ kysely }: Handle) {
  return kysely
    .selectFrom('scheduled_jobs')
    .innerJoin('scheduled_job_last_runs', 'scheduled_job_id', 'id');
}

function byId(db: Handle, organizationId: string, id: string) {
  return withLastRun(db)
    .select([...listedColumns, 'input', ...lastRunColumns])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id);
}

/** The organization's scheduled job of that id. */
export function findScheduledJob(db: Handle, organizationId: string, id: string) {
  return byId(db, organizationId, id).executeTakeFirst();
}

/** Like `findScheduledJob`, and locks the row until the transaction ends. */
export function lockScheduledJob(tx: Transaction, organizationId: string, id: string) {
  const query = byId(tx, organizationId, id);
  return locked(tx.dialect, query, (unlocked) =>
    unlocked.forUpdate('scheduled_jobs'),
  ).executeTakeFirst();
}

/** All of an organization, newest first. */
export function listScheduledJobs(db: Handle, organizationId: string) {
  return withLastRun(db)
    .select([...listedColumns, ...lastRunColumns])
    .where('organization_id', '=', organizationId)
    .orderBy('id', 'desc')
    .execute();
}

/**
 * Changes a locked scheduled job to `after`; false if another one has the same unique key. The caller has
 * locked the agent, so that no such scheduled job is added meanwhile.
 */
export async function updateScheduledJob(
  tx: Transaction,
  after: ScheduledJobRow,
): Promise<boolean> {
  const { id, organization_id: _, created_at: __, ...columns } = ownColumns(after);
  const rows = await tx.kysely
    .updateTable('scheduled_jobs')
    .set(columns satisfies Updateable<ScheduledJobsTable>)
    .where('id', '=', id)
    .where((eb) =>
      eb.not(
        eb.exists(
          uniqueColumns.reduce(
            (query, column) => query.where(`other.${column}`, '=', after[column]),
            eb.selectFrom('scheduled_jobs as other').select('other.id').where('other.id', '<>', id),
          ),
        ),
      ),
    )
    .returning('id')
    .execute();
  return rows.length > 0;
}

export async function deleteScheduledJob(tx: Transaction, id: string): Promise<void> {
  await tx.kysely.deleteFrom('scheduled_jobs').where('id', '=', id).execute();
  await tx.kysely
    .deleteFrom('scheduled_job_last_runs')
    .where('scheduled_job_id', '=', id)
    .execute();
}

/** Prevents the deletion of an agent that a scheduled job names. */
export const schedulesOfAgent = {
  blocker: { noun: 'schedules', names: namesAgent('scheduled_jobs') },
};

/** Scheduled jobs of an organization that run a skill version, newest first, and their total. */
export const listScheduledJobsOfSkill = newestOfSkill((kysely) =>
  kysely
    .selectFrom('scheduled_jobs')
    .select(['id', 'agent_id', 'cron_expression', 'timezone', 'enabled']),
);

// A literal, not a parameter: otherwise the partial index of enabled scheduled jobs is not used.
const enabled = sql.lit(1);

/** Scheduled jobs that are due, the longest waiting first, and the size of their inputs. */
export const findDue = allRows<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('scheduled_jobs')
    .select((eb) => [
      'id',
      'cron_expression',
      'timezone',
      'next_run_at',
      eb.fn<number>('octet_length', ['input']).as('input_bytes'),
    ])
    .where('enabled', '=', enabled)
    .where('next_run_at', '<=', p('now'))
    .orderBy('next_run_at')
    .orderBy('id')
    .limit(p('limit')),
);

export const findScheduledJobs = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('scheduled_jobs')
    .selectAll()
    .where(idIn(dialect, listOf(p, 'ids'))),
);

/** Locks those of `ids` that are still due and that no other process has locked. */
export const lockDue = allRows<{ ids: readonly string[]; now: number }, Transaction>()(
  (db, p, dialect) => {
    const query = db
      .selectFrom('scheduled_jobs')
      .select(['id', 'next_run_at', 'updated_at'])
      .where(idIn(dialect, listOf(p, 'ids')))
      .where('enabled', '=', enabled)
      .where('next_run_at', '<=', p('now'))
      .orderBy('id');
    return locked(dialect, query, (unlocked) => unlocked.forUpdate().skipLocked());
  },
);

/** Enabled scheduled jobs that are not due, by their ids from `after` on. */
export const findAhead = allRows<{ now: number; after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('scheduled_jobs')
    .select(['id', 'cron_expression', 'timezone', 'next_run_at', 'updated_at'])
    .where('enabled', '=', enabled)
    .where('next_run_at', '>', p('now'))
    .where('id', '>', p('after'))
    .orderBy('id')
    .limit(p('limit')),
);

/** A new next slot of a scheduled job, to set if the old one is unchanged. */
interface Planned {
  id: string;
  updated_at: number;
  from: number;
  to: number;
}

const plan = statement<Planned>()((db, p) =>
  db
    .updateTable('scheduled_jobs')
    .set({ next_run_at: p('to') })
    .where('id', '=', p('id'))
    .where('updated_at', '=', p('updated_at'))
    .where('next_run_at', '=', p('from')),
);

/** Sets `next_run_at`; the i-th result is false if another process has changed it already. */
export async function planScheduledJobs(
  tx: Transaction,
  rows: readonly Planned[],
): Promise<boolean[]> {
  return (await tx.changes(plan, rows)).map((changed) => changed > 0);
}
