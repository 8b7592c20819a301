/**
 * The tokens of the jobs that jobs have started, with all that those have started in turn. They have conversations of
 * their own, so they are no part of the sums over the messages of the jobs above them.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import { listValue } from '../../adapters/database/ids-in.ts';
import { firstRow } from '../../adapters/database/statement.ts';
import type { CountedTokens } from './conversations.store.ts';

/** Jobs below others whose tokens are added up; the sums over more of them are partial. */
const jobsMax = 20_000;

/** Whether a job has started others; most have not, and nothing more is read for them. */
const findChild = firstRow<{ id: string }>()((db, p) =>
  db.selectFrom('jobs').select('id').where('parent_job_id', '=', p('id')).limit(sql.lit(1)),
);

/** The tokens of all jobs below one; none where it has started no job. */
export async function sumTokensBelowJob(db: Handle, id: string): Promise<CountedTokens[]> {
  if ((await findChild(db, { id })) === undefined) return [];
  return [...(await sumTokensBelow(db, [id])).values()];
}

/** The tokens of all jobs below each of these, by the id of the one above. */
export async function sumTokensBelow(
  db: Handle,
  ids: readonly string[],
): Promise<ReadonlyMap<string, CountedTokens>> {
  const given =
    db.dialect === 'sqlite'
      ? sql`select value from json_each(${listValue(ids)})`
      : sql`select json_array_elements_text(${listValue(ids)}::json)`;
  const rows = await sums(db, given, sql`true`);
  return new Map(rows.map(({ root, ...counted }) => [root, counted]));
}

/** The tokens of all jobs below those of a conversation, without what is in the conversation itself. */
export async function sumTokensBelowConversation(db: Handle, id: string): Promise<CountedTokens[]> {
  const given = sql`select id from jobs where conversation_id = ${id}`;
  return sums(db, given, sql`job.conversation_id <> ${id}`);
}

type Summed = { readonly root: string } & CountedTokens;

async function sums(
  { dialect, kysely }: Handle,
  given: RawBuilder<unknown>,
  condition: RawBuilder<SqlBool>,
): Promise<Summed[]> {
  const isSqlite = dialect === 'sqlite';
  // Each way keeps the planner from walking through all jobs or messages: those of one job are looked up.
  const lookedUp = (table: string, name: string, by: RawBuilder<unknown>) =>
    isSqlite
      ? sql`cross join ${sql.table(table)} as ${sql.ref(name)} on ${by}`
      : sql`cross join lateral (select * from ${sql.table(table)} where ${by}) as ${sql.ref(name)}`;
  const of = (name: string, column: string) => sql.ref(isSqlite ? `${name}.${column}` : column);
  const { rows } = await sql<
    Record<keyof Summed, string | number> & { root: string; jobs: number }
  >`
    with recursive below(root, id) as (
      select parent_job_id, id from jobs where parent_job_id in (${given})
      union all select below.root, child.id
        from below ${lookedUp('jobs', 'child', sql`${of('child', 'parent_job_id')} = below.id`)}
    ), found as (select root, id from below limit ${jobsMax + 1})
    select root,
      (select count(*) from found) as jobs,
      sum(prompt_tokens) as prompt_tokens,
      sum(completion_tokens) as completion_tokens,
      sum(cache_read_tokens) as cache_read_tokens,
      sum(cache_write_tokens) as cache_write_tokens,
      sum(reasoning_tokens) as reasoning_tokens,
      coalesce(sum(cost), 0) as cost,
      sum(case when cost is null then 1 else 0 end) as unpriced,
      max(unreported % 2) + 2 * max(unreported / 2) as unreported
    from found
      ${lookedUp('jobs', 'job', sql`${of('job', 'id')} = found.id`)}
      ${lookedUp(
        'messages',
        'message',
        sql`${of('message', 'conversation_id')} = job.conversation_id and ${of('message', 'job_id')} = job.id
          and prompt_tokens + completion_tokens + unreported > 0`,
      )}
    where ${condition}
    group by root`.execute(kysely);
  return rows.map(({ root, jobs, ...row }) => ({
    root,
    prompt_tokens: Number(row.prompt_tokens),
    completion_tokens: Number(row.completion_tokens),
    cache_read_tokens: Number(row.cache_read_tokens),
    cache_write_tokens: Number(row.cache_write_tokens),
    reasoning_tokens: Number(row.reasoning_tokens),
    cost: Number(row.cost),
    unpriced: Number(row.unpriced),
    unreported: Number(jobs) > jobsMax ? 3 : Number(row.unreported),
  }));
}
