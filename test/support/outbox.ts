import { sql } from 'kysely';
import type { Database, Transaction } from '../../src/database/database.ts';
import { eventTypes } from '../../src/events/events.ts';
import { newId } from '../../src/kernel/ids.ts';
import { waitFor } from './wait-for.ts';

const never = Number.MAX_SAFE_INTEGER;

/**
 * Has the events of all agents recorded, of those that there are and of new ones: a webhook of each wants
 * them all. It is active since after every event, so no delivery is ever made for it.
 */
export async function recordEvents(database: Database): Promise<void> {
  const isSqlite = database.read.dialect === 'sqlite';
  const webhookOf = (agent: string) => {
    const values = {
      id: isSqlite ? 'hex(randomblob(16))' : 'gen_random_uuid()::text',
      organization_id: `${agent}.organization_id`,
      agent_id: `${agent}.id`,
      url: "'https://receiver.test/'",
      host: "'receiver.test:443'",
      events: `'${JSON.stringify(eventTypes)}'`,
      secret: "''",
      secret_sealed: '1',
      active: '1',
      failing: '0',
      consecutive_failures: '0',
      active_since: isSqlite ? `'${never}'` : `'${never}:${never}:'`,
      removed: '0',
      created_at: '0',
      updated_at: '0',
    };
    return `insert into webhooks (${Object.keys(values)}) select ${Object.values(values)}`;
  };
  const trigger = 'create trigger record_events after insert on agents for each row';
  const [found, ...statements] = isSqlite
    ? [
        `select name from sqlite_master where name = 'record_events'`,
        `${trigger} begin ${webhookOf('new')}; end`,
      ]
    : [
        `select tgname from pg_trigger where tgname = 'record_events'`,
        `create function record_events() returns trigger language plpgsql
          as $$ begin ${webhookOf('new')}; return null; end $$`,
        `${trigger} execute function record_events()`,
      ];
  await database.write(async (tx) => {
    if (!isSqlite) await sql`select pg_advisory_xact_lock(1)`.execute(tx.kysely);
    const { rows } = await sql.raw(found ?? '').execute(tx.kysely);
    if (rows.length > 0) return;
    for (const text of [...statements, `${webhookOf('agents')} from agents`]) {
      await sql.raw(text).execute(tx.kysely);
    }
  });
}

/** Records events whose data name them, whether or not a webhook wants them. */
export function addEvents(tx: Transaction, ...names: string[]): Promise<void> {
  return tx.insert(
    'events',
    names.map((code) => ({
      id: newId(),
      organization_id: 'default',
      agent_id: 'default',
      type: 'agent.error',
      data: JSON.stringify({ code, message: '', job_id: null }),
      created_at: 0,
    })),
  );
}

/**
 * Waits until every event recorded so far can be read: on PostgreSQL an open transaction on the same
 * server, in a neighbouring test perhaps, holds back those that began after it.
 */
export async function untilReadable(database: Database): Promise<void> {
  if (database.read.dialect === 'sqlite') return;
  await waitFor(
    async () => {
      const { rows } = await sql`select 1 from events
        where txid >= pg_snapshot_xmin(pg_current_snapshot()) limit 1`.execute(
        database.read.kysely,
      );
      return rows.length === 0;
    },
    { describe: 'no transaction is older than an event' },
  );
}
