/**
 * How many events are stored for each organization, and the bytes of their data: changed in the transaction
 * that stores or deletes events. Deletions change the first row of an organization, and each name and key
 * another one, in this order, so that transactions seldom wait for each other here and never in a circle.
 */
import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { EventTotalsTable } from '../../adapters/database/tables.ts';

const deletionShard = 0;
/** Rows that the events of an organization are added to, by name and key. */
const shards = 15;

/** An event that was deleted. */
export interface DeletedEvent {
  readonly organization_id: string;
  /** Of its data. */
  readonly bytes: number;
}

/** What a deletion returns of each event. */
export const deletedEvent = [
  'organization_id',
  sql<number>`octet_length(data)`.as('bytes'),
] as const;

const add = statement<EventTotalsTable>()((db, p) =>
  db
    .insertInto('event_totals')
    .values({
      organization_id: p('organization_id'),
      shard: p('shard'),
      events: p('events'),
      bytes: p('bytes'),
    })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'shard']).doUpdateSet((eb) => ({
        events: eb('event_totals.events', '+', eb.ref('excluded.events')),
        bytes: eb('event_totals.bytes', '+', eb.ref('excluded.bytes')),
      })),
    ),
);

/** Counts an event that this transaction stores. */
export function countStored(
  tx: Transaction,
  { organization_id, event, key }: Record<'organization_id' | 'event' | 'key', string>,
  bytes: number,
): Promise<void> {
  const shard = 1 + (sumOfCharacters(event + key) % shards);
  return tx.each(add, [{ organization_id, shard, events: 1, bytes }]);
}

function sumOfCharacters(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i += 1) sum += text.charCodeAt(i);
  return sum;
}

/** Counts events that this transaction has deleted. */
export async function countDeleted(
  tx: Transaction,
  deleted: readonly DeletedEvent[],
): Promise<void> {
  if (deleted.length === 0) return;
  const byOrganization = Map.groupBy(deleted, ({ organization_id }) => organization_id);
  const rows = [...byOrganization].map(([organization_id, events]) => ({
    organization_id,
    shard: deletionShard,
    events: -events.length,
    bytes: -events.reduce((sum, { bytes }) => sum + Number(bytes), 0),
  }));
  const ordered = rows.sort((a, b) => (a.organization_id < b.organization_id ? -1 : 1));
  await tx.each(add, ordered);
}
