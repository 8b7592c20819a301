/**
 * The queries that insert, claim and settle deliveries, and their counts. The delivery's epoch guards a
 * claim and a settlement, so a process that has lost its lease changes nothing.
 */
import { type Selectable, type SqlBool, sql } from 'kysely';
import { Counts } from '../../adapters/database/counts.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import { erasedEnd } from '../../adapters/database/erased-data.ts';
import { idIn, idInLocked } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import { allRows, listOf, statement } from '../../adapters/database/statement.ts';
import type {
  WebhookAttemptsTable,
  WebhookDeliveriesTable,
} from '../../adapters/database/tables.ts';

export type DeliveryRow = Selectable<WebhookDeliveriesTable>;
export type AttemptRow = Selectable<WebhookAttemptsTable>;

/** Call `change` for every delivery that is added, deleted or changes its status, last in the transaction. */
export const deliveryCounts = new Counts('webhook_delivery_counts', ['webhook_id']);

/** Rows inserted by one statement. */
const insertedMax = 100;

/** Inserts deliveries, without those whose event their webhook already has; the inserted ids. */
export async function insertDeliveries(
  tx: Transaction,
  rows: readonly DeliveryRow[],
): Promise<Set<string>> {
  const inserted = new Set<string>();
  for (let from = 0; from < rows.length; from += insertedMax) {
    const found = await tx.kysely
      .insertInto('webhook_deliveries')
      .values(rows.slice(from, from + insertedMax))
      .onConflict((conflict) =>
        conflict.columns(['webhook_id', 'event_id']).where('redelivery_of', 'is', null).doNothing(),
      )
      .returning('id')
      .execute();
    for (const { id } of found) inserted.add(id);
  }
  return inserted;
}

/** Of the deliveries in `ids` those that are due, with the hosts of their webhooks. */
export const findWaiting = allRows<{ ids: readonly string[]; now: number }>()((db, p, dialect) =>
  db
    .selectFrom((eb) =>
      eb
        .selectFrom('webhook_deliveries')
        .select(['id as delivery_id', 'webhook_id'])
        .where(idIn(dialect, listOf(p, 'ids')))
        .where('status', '=', 'pending')
        .where('due_at', '<=', p('now'))
        .as('waiting'),
    )
    .innerJoin('webhooks', 'webhooks.id', 'waiting.webhook_id')
    .where('webhooks.active', '=', 1)
    .select(['waiting.delivery_id as id', 'webhooks.host', 'webhooks.organization_id']),
);

const claimedColumns = [
  'id',
  'webhook_id',
  'event',
  'body',
  'attempts',
  'lost',
  'epoch',
  'is_test',
  'redelivery_of',
  'started_at',
] as const;
export type ClaimedDelivery = Pick<DeliveryRow, (typeof claimedColumns)[number]>;

interface Claims {
  readonly ids: readonly string[];
  readonly now: number;
  readonly due_by: number;
  readonly lease_until: number;
}

/**
 * Claims the deliveries in `ids` that are pending, due by `due_by`, not locked and of an active webhook;
 * returns those alone.
 */
export const claimDeliveries = allRows<Claims, Transaction>()((db, p, dialect) =>
  db
    .updateTable('webhook_deliveries')
    .set((eb) => ({
      status: 'delivering',
      attempts: eb('attempts', '+', 1),
      epoch: eb('epoch', '+', 1),
      started_at: p('now'),
      due_at: p('lease_until'),
    }))
    .where(
      idInLocked(
        dialect,
        listOf(p, 'ids'),
        'webhook_deliveries',
        sql<SqlBool>`status = 'pending' and due_at <= ${p('due_by')}
        and webhook_id in (select id from webhooks where active = 1)`,
        true,
      ),
    )
    .returning([...claimedColumns]),
);

/** A claim of a delivery, as its transaction wrote it. */
export type DeliveryClaim = Pick<ClaimedDelivery, 'id' | 'webhook_id' | 'epoch' | 'started_at'>;

const giveBack = statement<{ id: string; epoch: number; started_at: number | null; now: number }>()(
  (db, p) =>
    db
      .updateTable('webhook_deliveries')
      .set((eb) => ({ status: 'pending', attempts: eb('attempts', '-', 1), due_at: p('now') }))
      .where('id', '=', p('id'))
      .where('status', '=', 'delivering')
      .where('epoch', '=', p('epoch'))
      // Two processes may claim one epoch where the first of them was rolled back; not at the same millisecond.
      .where('started_at', '=', p('started_at')),
);

/** Takes back claims whose request was not sent: no attempt is charged. The i-th: whether it held its delivery. */
export async function giveBackDeliveries(
  tx: Transaction,
  claims: readonly DeliveryClaim[],
  now: number,
): Promise<boolean[]> {
  const rows = claims.map(({ id, epoch, started_at }) => ({ id, epoch, started_at, now }));
  return (await tx.changes(giveBack, rows)).map((changes) => changes > 0);
}

/** Locks the deliveries in `ids` that are under way; `is_erased`: the data of their body were erased. */
export const lockDelivering = allRows<{ ids: readonly string[] }, Transaction>()(
  (db, p, dialect) => {
    const isErased = sql<0 | 1>`case when body like ${sql.lit(`%${erasedEnd}`)} then 1 else 0 end`;
    const query = db
      .selectFrom('webhook_deliveries')
      .select(['id', 'epoch', isErased.as('is_erased')])
      .where(idIn(dialect, listOf(p, 'ids')))
      .where('status', '=', 'delivering')
      .orderBy('id');
    return locked(dialect, query);
  },
);

/** The new columns of a delivery at the end of an attempt. */
type SettledDelivery = Pick<DeliveryRow, 'id' | 'status' | 'lost' | 'due_at' | 'finished_at'>;

const settle = statement<SettledDelivery>()((db, p) =>
  db
    .updateTable('webhook_deliveries')
    .set({
      status: p('status'),
      lost: p('lost'),
      due_at: p('due_at'),
      finished_at: p('finished_at'),
    })
    .where('id', '=', p('id')),
);

/** Records the ends of attempts: what becomes of their deliveries, and the attempts themselves. */
export async function endAttempts(
  tx: Transaction,
  deliveries: readonly SettledDelivery[],
  attempts: readonly AttemptRow[],
): Promise<void> {
  await tx.each(settle, deliveries);
  await tx.insert('webhook_attempts', attempts);
}

/** Deliveries under way whose lease has expired. */
export const findExpired = allRows<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('webhook_deliveries')
    .select([...claimedColumns])
    .where('status', '=', sql.lit('delivering'))
    .where('due_at', '<', p('now'))
    .orderBy('due_at')
    .limit(p('limit')),
);
