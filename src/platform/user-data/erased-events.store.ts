/** The queries on events and deliveries that tell of a user. */
import { randomInt } from 'node:crypto';
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { erasedData, erasedEnd } from '../../adapters/database/erased-data.ts';
import type { OfUser } from './user-data.store.ts';

/** An event's place in the order of its organization; on SQLite the transaction is always 0. */
export interface EventsCursor {
  readonly txid: string;
  readonly seq: number;
}

/** Events of an organization after a cursor that are not erased, in their order. */
export function eventsAfter(
  db: Handle,
  organizationId: string,
  { txid, seq }: EventsCursor,
  limit: number,
) {
  const query = db.kysely
    .selectFrom('events')
    .select(['seq', 'data'])
    .where('organization_id', '=', organizationId)
    .where('data', '<>', erasedData)
    .limit(limit);
  return db.dialect === 'sqlite'
    ? query.select(sql<string>`'0'`.as('txid')).where('seq', '>', seq).orderBy('seq').execute()
    : query
        .select(sql<string>`txid::text`.as('txid'))
        .where(sql<boolean>`(txid, seq) > (${txid}::text::xid8, ${seq}::bigint)`)
        .orderBy(sql`events.txid`)
        .orderBy('seq')
        .execute();
}

export async function redactEvent(tx: Transaction, seq: number, data: string): Promise<void> {
  await tx.kysely.updateTable('events').set({ data }).where('seq', '=', seq).execute();
}

/**
 * How far an erasure that was not done has looked through the events; before all of them where none has. That place is
 * another one each time, so that `keepProgress` tells it from the one before.
 */
export async function beginProgress(tx: Transaction, user: OfUser): Promise<EventsCursor> {
  const { organizationId: organization_id, userId: user_id } = user;
  const first = { txid: '0', seq: -randomInt(1, 2 ** 47) };
  await tx.kysely
    .insertInto('user_erasures')
    .values({ organization_id, user_id, ...first })
    .onConflict((conflict) => conflict.columns(['organization_id', 'user_id']).doNothing())
    .execute();
  const kept = await tx.kysely
    .selectFrom('user_erasures')
    .select(['txid', 'seq'])
    .where('organization_id', '=', organization_id)
    .where('user_id', '=', user_id)
    .executeTakeFirst();
  return kept ?? first;
}

/** Keeps a place, if the one before it is still kept: another erasure may have ended the progress meanwhile. */
export async function keepProgress(
  tx: Transaction,
  user: OfUser,
  before: EventsCursor,
  { txid, seq }: EventsCursor,
): Promise<void> {
  await tx.kysely
    .updateTable('user_erasures')
    .set({ txid, seq })
    .where('organization_id', '=', user.organizationId)
    .where('user_id', '=', user.userId)
    .where('txid', '=', before.txid)
    .where('seq', '=', before.seq)
    .execute();
}

export async function endProgress(tx: Transaction, user: OfUser): Promise<void> {
  await tx.kysely
    .deleteFrom('user_erasures')
    .where('organization_id', '=', user.organizationId)
    .where('user_id', '=', user.userId)
    .execute();
}

/** Deliveries of webhooks that tell of these jobs or conversations, and are not erased yet. */
export async function deliveriesAbout(
  tx: Transaction,
  subjects: readonly string[],
  limit: number,
): Promise<{ id: string; body: string }[]> {
  if (subjects.length === 0) return [];
  return await tx.kysely
    .selectFrom('webhook_deliveries')
    .select(['id', 'body'])
    .where('subject', 'in', subjects)
    .where('body', 'not like', `%${erasedEnd}`)
    .orderBy('id')
    .limit(limit)
    .execute();
}

export async function redactDelivery(tx: Transaction, id: string, body: string) {
  await tx.kysely.updateTable('webhook_deliveries').set({ body }).where('id', '=', id).execute();
  await tx.kysely
    .updateTable('webhook_attempts')
    .set({ response: null })
    .where('delivery_id', '=', id)
    .execute();
}
