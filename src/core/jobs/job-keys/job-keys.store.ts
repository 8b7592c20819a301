/** The keys of jobs: one row a key, unique by its primary key, which the acceptance of a request with that key locks. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { idIn, isIn } from '../../../adapters/database/ids-in.ts';
import { type Lists, rowsIn, rowsParams, type Types } from '../../../adapters/database/rows-in.ts';
import { allRows, listOf, statement } from '../../../adapters/database/statement.ts';
import type { JobKeysTable } from '../../../adapters/database/tables.ts';
import { inIdOrder, type JobRow } from '../jobs.store.ts';

export type JobKeyRow = JobKeysTable;
type KeyName = Pick<JobKeyRow, 'organization_id' | 'skill' | 'job_key'>;

const types: Types<JobKeyRow> = {
  organization_id: 'text',
  skill: 'text',
  job_key: 'text',
  job_id: 'text',
  first_at: 'bigint',
  is_debounced: 'integer',
};

/** One text for each key. */
export const keyNameOf = ({ organization_id, skill, job_key }: KeyName) =>
  `${organization_id} ${skill} ${job_key}`;

/** The order in which many keys are locked, so that two transactions never wait for each other. */
const inKeyOrder = (a: KeyName, b: KeyName) => (keyNameOf(a) < keyNameOf(b) ? -1 : 1);

const take = statement<JobKeyRow | Lists<JobKeyRow>>()((db, p, dialect) => {
  const columns = Object.keys(types).map((column) => sql.ref(column));
  // A row that is there is locked by an update that changes nothing.
  const query = sql<JobKeyRow>`insert into job_keys (${sql.join(columns)})
    select * from ${rowsIn<JobKeyRow>(dialect, p, types)} where true
    on conflict (organization_id, skill, job_key) do update set job_key = excluded.job_key
    returning ${sql.join(columns)}`;
  return { compile: () => query.compile(db) };
});

/** Inserts those of the keys that are not there, and locks all; their rows as they are then. The keys are all different. */
export async function takeJobKeys(
  tx: Transaction,
  keys: readonly JobKeyRow[],
): Promise<JobKeyRow[]> {
  const taken = rowsParams(tx.dialect, keys.toSorted(inKeyOrder), types).map((given) =>
    tx.all(take, given),
  );
  return (await Promise.all(taken)).flat();
}

const give = statement<JobKeyRow>()((db, p) =>
  db
    .updateTable('job_keys')
    .set({ job_id: p('job_id'), first_at: p('first_at'), is_debounced: p('is_debounced') })
    .where('organization_id', '=', p('organization_id'))
    .where('skill', '=', p('skill'))
    .where('job_key', '=', p('job_key')),
);

/** Records the newest jobs of keys that this transaction has locked. */
export function giveJobKeys(tx: Transaction, keys: readonly JobKeyRow[]): Promise<void> {
  return tx.each(give, keys);
}

/** The jobs of keys; the caller has locked them. */
export const findJobsOfKeys = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .selectAll()
    .where(idIn(dialect, listOf(p, 'ids'))),
);

interface OpenKey extends KeyName {
  now: number;
}

const openTypes: Types<OpenKey> = {
  organization_id: 'text',
  skill: 'text',
  job_key: 'text',
  now: 'bigint',
};

const open = statement<OpenKey | Lists<OpenKey>>()((db, p, dialect) => {
  const given = rowsIn<OpenKey>(dialect, p, openTypes);
  const first = (columns: string) => sql`(select ${sql.raw(columns)} from jobs
    where organization_id = given.organization_id and job_key = given.job_key and due_at is not null
      and skill_category || '/' || skill_version || '/' || skill_name = given.skill
      and (status <> 'queued' or started_at is not null or expires_at is null or expires_at > given.now)
    order by id desc limit 1)`;
  const query =
    dialect === 'sqlite'
      ? sql<JobRow>`select jobs.* from ${given} cross join jobs on jobs.id = ${first('id')}`
      : sql<JobRow>`select jobs.* from ${given} cross join lateral ${first('*')} as jobs`;
  return { compile: () => query.compile(db) };
});

/** Of each of the keys the newest job that has not ended, nor expired before it began. */
export async function findOpenOfKeys(
  tx: Transaction,
  keys: readonly KeyName[],
  now: number,
): Promise<JobRow[]> {
  const keysNow = keys.map(({ organization_id, skill, job_key }) => ({
    organization_id,
    skill,
    job_key,
    now,
  }));
  const found = rowsParams(tx.dialect, keysNow, openTypes).map((given) => tx.all(open, given));
  return (await Promise.all(found)).flat();
}

const replaced = statement<{ id: string; replaced_by: string }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ replaced_by: p('replaced_by') })
    .where('id', '=', p('id')),
);

/** Records which job has taken the place of a cancelled one. */
export function recordReplaced(
  tx: Transaction,
  jobs: readonly { readonly id: string; readonly replaced_by: string }[],
): Promise<void> {
  return tx.each(replaced, jobs.toSorted(inIdOrder));
}

/** Those of the claimed jobs that have not begun earlier of whose keys another job is the newest, with that job. */
export const listReplacedUnbegun = allRows<{ ids: readonly string[] }, Transaction>()(
  (db, p, dialect) =>
    db
      .selectFrom('jobs')
      .innerJoin('job_keys', (join) =>
        join
          .onRef('job_keys.organization_id', '=', 'jobs.organization_id')
          .on(
            sql<SqlBool>`job_keys.skill = jobs.skill_category || '/' || jobs.skill_version || '/' || jobs.skill_name`,
          )
          .onRef('job_keys.job_key', '=', 'jobs.job_key')
          .onRef('job_keys.job_id', '<>', 'jobs.id'),
      )
      .select(['jobs.id', 'jobs.epoch', 'job_keys.job_id as replaced_by'])
      .where(isIn(dialect, sql.ref('jobs.id'), listOf(p, 'ids')))
      .where('jobs.status', '=', sql.lit('active'))
      .where('jobs.has_begun', '=', sql.lit(0))
      .where('jobs.attempt', '<=', sql.lit(1)),
);

type Changed = Pick<
  JobRow,
  'id' | 'conversation_id' | 'input' | 'agent_overrides' | 'priority' | 'expires_at'
>;

const change = statement<Omit<Changed, 'conversation_id'>>()((db, p) =>
  db
    .updateTable('jobs')
    .set({
      input: p('input'),
      agent_overrides: p('agent_overrides'),
      priority: p('priority'),
      expires_at: p('expires_at'),
    })
    .where('id', '=', p('id')),
);

const move = statement<{ id: string; run_at: number }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ run_at: p('run_at'), due_at: p('run_at'), held_by: null })
    .where('id', '=', p('id')),
);

/** Gives queued jobs another moment, at which they wait for the places of their limits anew; the transaction has locked them. */
export function moveJobsOfKeys(
  tx: Transaction,
  jobs: readonly { readonly id: string; readonly run_at: number }[],
): Promise<void> {
  return tx.each(move, jobs.toSorted(inIdOrder));
}

const changeMessage = statement<{ id: string; conversation_id: string; content: string }>()(
  (db, p) =>
    db
      .updateTable('messages')
      .set({ content: p('content') })
      .where('conversation_id', '=', p('conversation_id'))
      .where('job_id', '=', p('id'))
      .where('role', '=', sql.lit('user')),
);

/** Gives queued jobs that have not begun another input; the transaction has locked them. */
export async function changeJobsOfKeys(
  tx: Transaction,
  jobs: readonly (Changed & { readonly content: string })[],
): Promise<void> {
  const inOrder = jobs.toSorted(inIdOrder);
  await tx.each(
    change,
    inOrder.map(({ content: _content, conversation_id: _id, ...row }) => row),
  );
  await tx.each(
    changeMessage,
    inOrder.map(({ id, conversation_id, content }) => ({ id, conversation_id, content })),
  );
}

const old = allRows<{ from: number; before: number; limit: number }, Transaction>()((db, p) =>
  db
    .selectFrom('job_keys')
    .select(['organization_id', 'skill', 'job_key', 'job_id', 'first_at'])
    .where('first_at', '>=', p('from'))
    .where('first_at', '<', p('before'))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('jobs')
            .select('jobs.id')
            .whereRef('jobs.id', '=', 'job_keys.job_id')
            .where('jobs.due_at', 'is not', null),
        ),
      ),
    )
    .orderBy('first_at')
    .limit(p('limit')),
);
const remove = statement<Omit<JobKeyRow, 'first_at' | 'is_debounced'>>()((db, p) =>
  db
    .deleteFrom('job_keys')
    .where('organization_id', '=', p('organization_id'))
    .where('skill', '=', p('skill'))
    .where('job_key', '=', p('job_key'))
    // Another request may have taken the key meanwhile.
    .where('job_id', '=', p('job_id')),
);

/**
 * Deletes at most `limit` keys between two moments whose jobs have ended: how many, and from which moment on others may be
 * left, so that those of unended jobs before it are not read again.
 */
export async function deleteOldJobKeys(
  tx: Transaction,
  between: { readonly from: number; readonly before: number },
  limit: number,
): Promise<{ readonly deleted: number; readonly from: number }> {
  const keys = await old(tx, { ...between, limit });
  await tx.each(
    remove,
    keys.toSorted(inKeyOrder).map(({ first_at: _, ...key }) => key),
  );
  return { deleted: keys.length, from: Number(keys.at(-1)?.first_at ?? between.from) };
}
