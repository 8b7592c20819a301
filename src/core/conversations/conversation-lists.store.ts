/**
 * Lists of conversations and how many there are. How many is read off the rows kept for it; only those
 * of one user are counted.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { ConversationsTable } from '../../adapters/database/tables.ts';

const narrowedBy = ['agent_id', 'status', 'trigger_type', 'user_id'] as const;
type Filter = (typeof narrowedBy)[number];

export type ConversationFilters = { [C in Filter]?: ConversationsTable[C] | undefined };

/** A page of conversations, newest first, and how many there are in all. */
export async function listConversations(
  db: Handle,
  organizationId: string,
  filters: ConversationFilters,
  page: PageAsked,
) {
  let query = db.kysely.selectFrom('conversations').where('organization_id', '=', organizationId);
  for (const column of narrowedBy) {
    const value = filters[column];
    if (value !== undefined) query = query.where(column, '=', value);
  }
  const { total, kinds } =
    filters.user_id === undefined
      ? await countConversations(db, organizationId, filters)
      : { total: await countOf(query), kinds: Number.POSITIVE_INFINITY };
  const rows = Math.min(page.limit, total - page.offset);
  if (rows <= 0) return { conversations: [], total };
  const within = { limit: rows, offset: page.offset };
  const newest = query.orderBy('id', 'desc').limit(rows).offset(page.offset);
  let found = newest;
  if (db.dialect === 'postgres') {
    const ids = idsOfPage(organizationId, filters, within, { total, kinds });
    if (ids !== undefined) found = query.where(isAmong(ids)).orderBy('id', 'desc').limit(rows);
    else if (Object.values(filters).every((value) => value === undefined)) {
      // What the page skips is skipped in the index: its rows are not looked at.
      found = query.where(isAmong(sql`${newest.select('id')}`)).orderBy('id', 'desc');
    }
  }
  return { conversations: await found.selectAll().execute(), total };
}

/** How each of these conversations begins: so many characters of its first message that is kept. */
export async function listOpenings(
  db: Handle,
  ids: readonly string[],
  characters: number,
): Promise<Map<string, string | null>> {
  if (ids.length === 0) return new Map();
  const rows = await db.kysely
    .selectFrom('conversations')
    .where('id', 'in', ids)
    .select((eb) => [
      'id',
      eb
        .selectFrom('messages')
        .whereRef('messages.conversation_id', '=', 'conversations.id')
        .select(sql<string>`substr(content, 1, ${sql.lit(characters)})`.as('opening'))
        .orderBy('messages.id')
        .limit(1)
        .as('opening'),
    ])
    .execute();
  return new Map(rows.map(({ id, opening }) => [id, opening]));
}

/** A join would be free to walk through all of them. */
const isAmong = (ids: RawBuilder<string>) => sql<SqlBool>`id = any (array(${ids}))`;

/** Kinds whose newest conversations are looked up for a page, and ids that are read for it. */
const kindsMax = 1_000;
const readMax = 50_000;
/** So many that are under way are looked up by their jobs; more of them are easily met. */
const activeMax = 5_000;

/** Conversations of an organization by agent and trigger, with how many there are. */
function kindsOf(organizationId: string, { agent_id, trigger_type, status }: ConversationFilters) {
  const given = Object.entries({ agent_id, trigger_type, status })
    .filter(([, value]) => value !== undefined)
    .map(([column, value]) => sql` and ${sql.ref(column)} = ${value}`);
  return sql`select agent_id, trigger_type, sum(count) as n from conversation_counts
    where organization_id = ${organizationId} ${sql.join(given, sql``)}
    group by agent_id, trigger_type having sum(count) > 0`;
}

async function countConversations(
  db: Handle,
  organizationId: string,
  filters: ConversationFilters,
): Promise<{ total: number; kinds: number }> {
  const { rows } = await sql<{ total: number | null; kinds: number }>`
    select sum(n) as total, count(*) as kinds from (${kindsOf(organizationId, filters)}) as kinds`.execute(
    db.kysely,
  );
  return { total: Number(rows[0]?.total ?? 0), kinds: Number(rows[0]?.kinds ?? 0) };
}

/**
 * The ids of a page on PostgreSQL, where they are found without walking past everything else: the
 * newest of each kind, which an index has, another one for those that failed; those that are under way
 * by their jobs. Undefined where that would be more.
 */
function idsOfPage(
  organizationId: string,
  filters: ConversationFilters,
  { limit, offset }: PageAsked,
  { total, kinds }: { total: number; kinds: number },
): RawBuilder<string> | undefined {
  const { agent_id, trigger_type, status } = filters;
  if (filters.user_id !== undefined) return undefined;
  if (status === 'active' && total <= activeMax) {
    const ofTrigger = trigger_type === undefined ? sql`` : sql`and trigger_type = ${trigger_type}`;
    return sql<string>`select id from conversations
      where id = any (array(${conversationsOfJobs(organizationId, agent_id)}))
        and status = 'active' ${ofTrigger}
      order by id desc limit ${limit} offset ${offset}`;
  }
  const isNarrow = agent_id !== undefined || trigger_type !== undefined || status === 'failed';
  if (!isNarrow || kinds > kindsMax || Math.min(total, kinds * (offset + limit)) > readMax) {
    return undefined;
  }
  const ofStatus =
    status === undefined
      ? sql``
      : status === 'failed'
        ? sql`and conversations.failed`
        : sql`and conversations.status = ${status}`;
  return sql<string>`select newest.id from (${kindsOf(organizationId, filters)}) as kinds
    cross join lateral (
      select conversations.id from conversations
      where conversations.organization_id = ${organizationId}
        and conversations.agent_id = kinds.agent_id
        and conversations.trigger_type = kinds.trigger_type ${ofStatus}
      order by conversations.id desc limit least(kinds.n, ${offset + limit})
    ) as newest
    order by newest.id desc limit ${limit} offset ${offset}`;
}

/** The conversations of an organization's jobs that have not ended. */
function conversationsOfJobs(organizationId: string, agentId: string | undefined) {
  const ofAgent = agentId === undefined ? sql`` : sql`and agent_id = ${agentId}`;
  return sql`select jobs.conversation_id from (
      select agent_id, skill_category, skill_name, skill_version, trigger_type, status from job_counts
      where organization_id = ${organizationId} and status in ('queued', 'active', 'waiting') ${ofAgent}
      group by 1, 2, 3, 4, 5, 6 having sum(count) > 0
    ) as kinds
    cross join lateral (
      select conversation_id from jobs where jobs.organization_id = ${organizationId}
        and jobs.agent_id = kinds.agent_id and jobs.skill_category = kinds.skill_category
        and jobs.skill_name = kinds.skill_name and jobs.skill_version = kinds.skill_version
        and jobs.trigger_type = kinds.trigger_type and jobs.status = kinds.status
    ) as jobs`;
}
