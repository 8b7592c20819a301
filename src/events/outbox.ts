/**
 * The outbox: an event is a row that is written in the same transaction as the change that it reports,
 * so both exist or neither does. An event that no webhook wants is not written. Readers follow by cursor.
 * The dispatcher delivers events, not this file.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Database, Transaction } from '../database/database.ts';
import { PlatformError } from '../kernel/errors.ts';
import { newId } from '../kernel/ids.ts';
import type { NewEvent } from './events.ts';
import { type EventRow, findAppenders, findWanted, insertWanted } from './outbox.store.ts';

/** Between two looks at the transactions that a new webhook waits for. */
const waitMs = 10;
/** They end sooner: PostgreSQL ends a statement and an idle transaction after ten seconds. */
const waitMaxMs = 15_000;

/**
 * Records those of the events that an active webhook wants, in order. What this transaction cannot see of
 * a webhook that is being created, `untilHeard` makes up for.
 */
export async function appendEvents(
  tx: Transaction,
  events: readonly NewEvent[],
  now: number,
): Promise<void> {
  if (tx.dialect === 'postgres') await insertWanted(tx, events.map(rowOf(now)));
  else {
    // Asked before the rows are made: mostly there are none.
    const wanted = events.length === 0 ? events : await wantedOf(tx, events);
    await tx.insert('events', wanted.map(rowOf(now)));
  }
}

const agentOf = ({ organizationId, agentId }: NewEvent) => `${organizationId}/${agentId}`;

async function wantedOf(tx: Transaction, events: readonly NewEvent[]): Promise<NewEvent[]> {
  const types = new Map<string, string>();
  for (const event of events) {
    const agent = agentOf(event);
    if (!types.has(agent)) types.set(agent, await findWanted(tx, event));
  }
  return events.filter((event) => types.get(agentOf(event))?.includes(`"${event.type}"`));
}

const rowOf =
  (now: number) =>
  (event: NewEvent): EventRow => ({
    id: newId(),
    organization_id: event.organizationId,
    agent_id: event.agentId,
    type: event.type,
    data: JSON.stringify(event.data),
    created_at: now,
  });

/**
 * Resolves when every event that is committed from now on is recorded for the webhooks that are committed
 * by now. On PostgreSQL it waits for the transactions that may have appended before that: they did not see
 * a new webhook. On SQLite, where one transaction follows another, there are none.
 */
export async function untilHeard({ read }: Pick<Database, 'read'>): Promise<void> {
  if (read.dialect === 'sqlite') return;
  const end = performance.now() + waitMaxMs;
  let before = await findAppenders(read);
  while (before.length > 0) {
    if (performance.now() > end) {
      throw new PlatformError('service_unavailable', 'A transaction does not end', {
        retryAfter: 1,
      });
    }
    await elapsed(waitMs);
    const open = new Set(await findAppenders(read));
    before = before.filter((one) => open.has(one));
  }
}
