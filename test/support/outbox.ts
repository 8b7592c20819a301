import { sql } from 'kysely';
import type { Database, Transaction } from '../../src/adapters/database/database.ts';
import { eventTypes } from '../../src/core/events/events.ts';
import { allAgents, newId } from '../../src/kernel/ids.ts';
import { insertWebhook } from '../../src/platform/webhooks/webhooks.store.ts';
import { waitFor } from './wait-for.ts';

const never = Number.MAX_SAFE_INTEGER;

/**
 * Has the events of an organization recorded, those of all its agents: it gets a webhook for them, unless it has it. The
 * webhook is active since after every event, so no delivery is ever made for it.
 */
export async function recordEvents(database: Database, organizationId = 'default'): Promise<void> {
  const host = 'recorded.test:443';
  await database.write(async (tx) => {
    const known = await tx.kysely
      .selectFrom('webhooks')
      .select('id')
      .where('organization_id', '=', organizationId)
      .where('host', '=', host)
      .executeTakeFirst();
    if (known !== undefined) return;
    await insertWebhook(tx, {
      id: newId(),
      organization_id: organizationId,
      agent_id: allAgents,
      url: `https://${host}/`,
      host,
      events: JSON.stringify(eventTypes),
      ...{ secret: '', secret_sealed: 1, active: 1, failing: 0, consecutive_failures: 0 },
      active_since: tx.dialect === 'sqlite' ? String(never) : `${never}:${never}:`,
      ...{ removed: 0, last_delivery_at: null, created_at: 0, updated_at: 0 },
    });
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
