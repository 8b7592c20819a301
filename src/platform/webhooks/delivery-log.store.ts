/** The queries of the delivery log. */
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { DeliveryRow } from './deliveries.store.ts';

export function findDelivery(db: Handle, webhookId: string, id: string) {
  return deliveryOf(db, webhookId, id).executeTakeFirst();
}

/** Like `findDelivery`, locked against changes. */
export function lockDelivery(tx: Transaction, webhookId: string, id: string) {
  return locked(tx.dialect, deliveryOf(tx, webhookId, id)).executeTakeFirst();
}

function deliveryOf(db: Handle, webhookId: string, id: string) {
  return db.kysely
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('webhook_id', '=', webhookId)
    .where('id', '=', id);
}

const loggedColumns = [
  'id',
  'webhook_id',
  'event_id',
  'event',
  'status',
  'attempts',
  'lost',
  'epoch',
  'due_at',
  'started_at',
  'is_test',
  'redelivery_of',
  'created_at',
  'finished_at',
] as const;
/** The columns of a delivery that lists show. They leave out the body, because it is long. */
export type LoggedDelivery = Pick<DeliveryRow, (typeof loggedColumns)[number]>;

/** Deliveries that are counted where hidden types of events leave some out; the list ends there. */
export const countedMax = 10_000;

/** A page of the deliveries of a webhook, newest first, without the hidden types of events, and their total. */
export async function listDeliveries(
  db: Handle,
  webhookId: string,
  hidden: readonly string[],
  page: PageAsked,
): Promise<{ data: LoggedDelivery[]; total: number }> {
  const total = await countShown(db, webhookId, hidden);
  const limit = Math.min(page.limit, total - page.offset);
  if (limit <= 0) return { data: [], total };
  const data = await db.kysely
    .selectFrom('webhook_deliveries')
    .select([...loggedColumns])
    // The subquery skips the rows before the page in the index, without reading them.
    .where('id', 'in', shownIds(db, webhookId, hidden).limit(limit).offset(page.offset))
    .orderBy('id', 'desc')
    .execute();
  return { data, total };
}

/** The ids of the deliveries of a webhook, newest first, without the hidden types of events. */
function shownIds(db: Handle, webhookId: string, hidden: readonly string[]) {
  return db.kysely
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .$if(hidden.length > 0, (all) => all.where('event', 'not in', hidden))
    .orderBy('id', 'desc');
}

async function countShown(db: Handle, webhookId: string, hidden: readonly string[]) {
  if (hidden.length > 0) {
    const counted = shownIds(db, webhookId, hidden).limit(countedMax);
    return countOf(db.kysely.selectFrom(counted.as('counted')));
  }
  const row = await db.kysely
    .selectFrom('webhook_delivery_counts')
    .select((eb) => eb.fn.sum<number | null>('count').as('n'))
    .where('webhook_id', '=', webhookId)
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}

/**
 * A page of an organization's deliveries with any of these subjects, without the hidden types of events, newest first,
 * each with its url, and their total. There are few, so the query counts them.
 */
export async function listDeliveriesAbout(
  db: Handle,
  organizationId: string,
  {
    subjects,
    hidden,
  }: { readonly subjects: readonly string[]; readonly hidden: readonly string[] },
  page: PageAsked,
): Promise<{ data: (LoggedDelivery & { url: string })[]; total: number }> {
  const query = db.kysely
    .selectFrom('webhook_deliveries')
    .innerJoin('webhooks', 'webhooks.id', 'webhook_deliveries.webhook_id')
    .where('webhook_deliveries.subject', 'in', subjects)
    .where('webhooks.organization_id', '=', organizationId)
    .where('webhooks.removed', '=', 0)
    .$if(hidden.length > 0, (all) => all.where('webhook_deliveries.event', 'not in', hidden));
  const data = await query
    .select(loggedColumns.map((column) => `webhook_deliveries.${column}` as const))
    .select('webhooks.url')
    .orderBy('webhook_deliveries.id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { data, total: await countOf(query) };
}

/** The attempts of deliveries, oldest first. */
export async function listAttempts(db: Handle, deliveryIds: readonly string[]) {
  if (deliveryIds.length === 0) return [];
  return db.kysely
    .selectFrom('webhook_attempts')
    .selectAll()
    .where('delivery_id', 'in', deliveryIds)
    .orderBy('delivery_id')
    .orderBy('attempt')
    .execute();
}

/** The number of deliveries in each status, over all organizations. */
export async function countDeliveries(db: Handle) {
  const rows = await db.kysely
    .selectFrom('webhook_delivery_counts')
    .select((eb) => ['status', eb.fn.sum<number>('count').as('n')])
    .groupBy('status')
    .execute();
  return rows.map(({ status, n }) => ({ status, n: Number(n) }));
}
