/** The queries that write the outbox. */
import { type Insertable, type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { type Lists, listsOf, rowsIn, type Types } from '../../adapters/database/rows-in.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { EventsTable } from '../../adapters/database/tables.ts';
import { allAgents } from '../../kernel/ids.ts';

export type EventRow = Required<Omit<Insertable<EventsTable>, 'seq'>>;

interface AgentKey {
  readonly organizationId: string;
  readonly agentId: string;
}

const subscribed = statement<AgentKey>()((db, p) =>
  db
    .selectFrom('webhooks')
    .select('events')
    .where('organization_id', '=', p('organizationId'))
    .where(sql<SqlBool>`agent_id in (${p('agentId')}, ${sql.lit(allAgents)})`)
    .where('active', '=', (eb) => eb.lit(1))
    .unionAll(
      db
        .selectFrom('webhook_listeners')
        .select('events')
        .where('organization_id', '=', p('organizationId'))
        .where(sql<SqlBool>`agent_id in ('', ${p('agentId')})`),
    ),
);

/** The types of events to which an agent's active webhooks and sessions that listen are subscribed, as JSON arrays. */
export async function findSubscribedTypes(tx: Transaction, agent: AgentKey): Promise<string> {
  return (await tx.all(subscribed, agent)).map(({ events }) => events).join();
}

const types: Types<EventRow> = {
  id: 'text',
  organization_id: 'text',
  agent_id: 'text',
  type: 'text',
  data: 'text',
  created_at: 'bigint',
};

/** The subquery cannot become a join, which could put the rows in another order. */
const insert = statement<Lists<EventRow>>()((db, p) =>
  db
    .insertInto('events')
    .columns(['id', 'organization_id', 'agent_id', 'type', 'data', 'created_at'])
    .expression(
      db
        .selectFrom(rowsIn<EventRow>('postgres', p, types))
        .selectAll()
        .where(
          sql<SqlBool>`((select true from webhooks where active = 1
            and organization_id = given.organization_id and agent_id in (given.agent_id, ${sql.lit(allAgents)})
            and strpos(events, '"' || given.type || '"') > 0 limit 1)
            or (select true from webhook_listeners where organization_id = given.organization_id
            and (agent_id = '' or agent_id = given.agent_id)
            and strpos(events, '"' || given.type || '"') > 0 limit 1))`,
        ),
    ),
);

/** Inserts those of the rows to which an active webhook or a session is subscribed, on PostgreSQL, without waiting for an answer. */
export async function insertSubscribed(tx: Transaction, rows: readonly EventRow[]): Promise<void> {
  if (rows.length > 0) await tx.each(insert, [listsOf(rows, types)]);
}

/**
 * The transactions under way that may have appended, on PostgreSQL. Each has locked the table before it
 * read the webhooks, and keeps the lock until it ends.
 */
export async function findAppenders(db: Handle): Promise<string[]> {
  const { rows } = await sql<{ virtualtransaction: string }>`select virtualtransaction from pg_locks
    where relation = 'events'::regclass and mode = 'RowExclusiveLock' and granted
    and database = (select oid from pg_database where datname = current_database())`.execute(
    db.kysely,
  );
  return rows.map(({ virtualtransaction }) => virtualtransaction);
}
