/** The Idempotency-Keys of events: one row a key, unique by index, written with the event that it names. */
import type { Selectable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import {
  createKeyDeletion,
  createKeyTaking,
  type KeyName,
} from '../../adapters/database/idempotency-keys.ts';
import { firstRow, statement } from '../../adapters/database/statement.ts';
import type { EventIdempotencyKeysTable } from '../../adapters/database/tables.ts';

export type EventKeyRow = Selectable<EventIdempotencyKeysTable>;

const take = createKeyTaking<EventKeyRow>('event_idempotency_keys', {
  owner: 'text',
  idempotency_key: 'text',
  fingerprint: 'text',
  event_id: 'text',
  delivered: 'integer',
  created_at: 'bigint',
});

const findKey = firstRow<KeyName>()((db, p) =>
  db
    .selectFrom('event_idempotency_keys')
    .selectAll()
    .where('owner', '=', p('owner'))
    .where('idempotency_key', '=', p('idempotency_key')),
);

/**
 * Takes the key for an event, unless an earlier request has it, and that was not before
 * `forgottenBefore`; the row of that one. Requests with the same key wait for each other here.
 */
export async function takeEventKey(
  tx: Transaction,
  row: EventKeyRow,
  forgottenBefore: number,
): Promise<EventKeyRow | undefined> {
  const [taken] = await take(tx, [row], forgottenBefore);
  return taken === undefined ? findKey(tx, row) : undefined;
}

/** The key as an earlier request has recorded it, also when it has expired. */
export function findEventKey(db: Handle, name: KeyName): Promise<EventKeyRow | undefined> {
  return findKey(db, name);
}

const describeEvent = statement<KeyName & Pick<EventKeyRow, 'event_id' | 'delivered'>>()((db, p) =>
  db
    .updateTable('event_idempotency_keys')
    .set({ event_id: p('event_id'), delivered: p('delivered') })
    .where('owner', '=', p('owner'))
    .where('idempotency_key', '=', p('idempotency_key')),
);

/** Records the receipt for repeats of the request. */
export function describeKeyedEvent(
  tx: Transaction,
  row: KeyName & Pick<EventKeyRow, 'event_id' | 'delivered'>,
): Promise<void> {
  return tx.each(describeEvent, [row]);
}

export const deleteOldEventKeys = createKeyDeletion('event_idempotency_keys');
