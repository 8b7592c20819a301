/**
 * The queries that insert, claim and settle deliveries, and their counts. The delivery's epoch guards a
 * claim and a settlement, so a process that has lost its lease changes nothing.
 */
import { type Selectable, type SqlBool, sql } from 'kysely';
import { createCounts } from '../database/counts.ts';
import type { Handle, Transaction } from '../database/database.ts';
import { idIn, idInLocked, idsParam } from '../database/ids-in.ts';
import { locked } from '../database/locked.ts';
import { statement } from '../database/statement.ts';
import type {
  DeliveryStatus,
  WebhookAttemptsTable,
  WebhookDeliveriesTable,
} from '../database/tables.ts';

export type DeliveryRow = Selectable<WebhookDeliveriesTable>;
export type AttemptRow = Selectable<WebhookAttemptsTable>;

/** Call `change` for every delivery that is added, deleted or changes its status, last in the transaction. */
export const { change: changeDeliveryCounts, fold: foldDeliveryCounts } = createCounts(
  'webhook_delivery_counts',
  ['webhook_id'],
);

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

/** A due delivery and the host of its webhook. */
export interface WaitingDelivery {
  readonly id: string;
  readonly host: string;
}

const waiting = statement<{ ids: string; now: number }>()((db, p, dialect) =>
  db
    .selectFrom((eb) =>
      eb
        .selectFrom('webhook_deliveries')
        .select(['id as delivery_id', 'webhook_id'])
        .where(idIn(dialect, p('ids')))
        .where('status', '=', 'pending')
        .where('due_at', '<=', p('now'))
        .as('waiting'),
    )
    .innerJoin('webhooks', 'webhooks.id', 'waiting.webhook_id')
    .where('webhooks.active', '=', 1)
    .select(['waiting.delivery_id as id', 'webhooks.host']),
);

/** The deliveries in `ids` that are due. */
export function findWaiting(
  db: Handle,
  ids: readonly string[],
  now: number,
): Promise<WaitingDelivery[]> {
  return db.all(waiting, { ids: idsParam(ids), now });
}

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

const claim = statement<{ ids: string; now: number; due_by: number; lease_until: number }>()(
  (db, p, dialect) =>
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
          p('ids'),
          'webhook_deliveries',
          sql<SqlBool>`status = 'pending' and due_at <= ${p('due_by')}
          and webhook_id in (select id from webhooks where active = 1)`,
          true,
        ),
      )
      .returning([...claimedColumns]),
);

/**
 * Claims the deliveries in `ids` that are pending, due by `dueBy`, not locked and of an active webhook;
 * returns those alone.
 */
export function claimDeliveries(
  tx: Transaction,
  ids: readonly string[],
  now: number,
  leaseUntil: number,
  dueBy = now,
): Promise<ClaimedDelivery[]> {
  return tx.all(claim, { ids: idsParam(ids), now, due_by: dueBy, lease_until: leaseUntil });
}

const held = statement<{ ids: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('webhook_deliveries')
    .select(['id', 'epoch'])
    .where(idIn(dialect, p('ids')))
    .where('status', '=', 'delivering')
    .orderBy('id');
  return locked(dialect, query);
});

/** Locks the deliveries in `ids` that are under way; their epochs by id. */
export async function lockDelivering(
  tx: Transaction,
  ids: readonly string[],
): Promise<Map<string, number>> {
  const rows = await tx.all(held, { ids: idsParam(ids) });
  return new Map(rows.map(({ id, epoch }) => [id, epoch]));
}

/** The new columns of a delivery at the end of an attempt. */
export interface SettledDelivery {
  readonly id: string;
  readonly status: DeliveryStatus;
  readonly lost: number;
  readonly due_at: number | null;
  readonly finished_at: number | null;
}

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

export async function settleDeliveries(
  tx: Transaction,
  rows: readonly SettledDelivery[],
): Promise<void> {
  await tx.each(settle, rows);
}

export async function insertAttempts(tx: Transaction, rows: readonly AttemptRow[]): Promise<void> {
  await tx.insert('webhook_attempts', rows);
}

const expired = statement<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('webhook_deliveries')
    .select([...claimedColumns])
    .where('status', '=', sql.lit('delivering'))
    .where('due_at', '<', p('now'))
    .orderBy('due_at')
    .limit(p('limit')),
);

/** Deliveries under way whose lease has expired. */
export function findExpired(db: Handle, now: number, limit: number): Promise<ClaimedDelivery[]> {
  return db.all(expired, { now, limit });
}
