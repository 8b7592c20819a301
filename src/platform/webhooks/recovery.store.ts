/** The queries of the sweep and of retention: due, lost and old deliveries. */
import { type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely';
import { createBringForward } from '../../adapters/database/bring-forward.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf } from '../../adapters/database/statement.ts';
import type { Tables } from '../../adapters/database/tables.ts';

interface Waiting {
  readonly after: string;
  readonly full: readonly string[];
  readonly now: number;
  readonly limit: number;
}

/**
 * Ids of webhooks with pending deliveries, after the id `after`. The query steps through the index from
 * webhook to webhook, so a webhook with a million deliveries costs no more than one with a single one.
 */
function withPending(db: Kysely<Tables>, after: RawBuilder<string>) {
  return db.withRecursive('waiting(webhook_id)', (cte) =>
    cte
      .selectFrom('webhook_deliveries')
      .select((eb) => eb.fn.min<string | null>('webhook_id').as('webhook_id'))
      .where('status', '=', sql.lit('pending'))
      .where('webhook_id', '>', after)
      .unionAll(
        cte
          .selectFrom('waiting')
          .select((eb) =>
            eb
              .selectFrom('webhook_deliveries')
              .select((sub) => sub.fn.min<string | null>('webhook_deliveries.webhook_id').as('n'))
              .where('status', '=', sql.lit('pending'))
              .whereRef('webhook_deliveries.webhook_id', '>', 'waiting.webhook_id')
              .as('webhook_id'),
          )
          .where('waiting.webhook_id', 'is not', null),
      ),
  );
}

/** Active webhooks with due deliveries, after the id `after`, without those of the hosts in `full`. */
export const findWaitingWebhooks = allRows<Waiting>()((db, p, dialect) =>
  withPending(db, p('after'))
    .selectFrom('waiting')
    .innerJoin('webhooks', 'webhooks.id', 'waiting.webhook_id')
    .select(['webhooks.id', 'webhooks.host'])
    .where('webhooks.active', '=', 1)
    .where(sql<SqlBool>`not ${isIn(dialect, sql`webhooks.host`, listOf(p, 'full'))}`)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('webhook_deliveries')
          .select(sql.lit(1).as('one'))
          .whereRef('webhook_deliveries.webhook_id', '=', 'waiting.webhook_id')
          .where('status', '=', sql.lit('pending'))
          .where('due_at', '<=', p('now')),
      ),
    )
    .orderBy('webhooks.id')
    .limit(p('limit')),
);

/** An inactive webhook that still has pending deliveries; `after` is empty. */
export const findInactive = firstRow<{ after: string }>()((db, p) =>
  withPending(db, p('after'))
    .selectFrom('waiting')
    .innerJoin('webhooks', 'webhooks.id', 'waiting.webhook_id')
    .select('webhooks.id')
    .where('webhooks.active', '=', 0)
    .where('webhooks.removed', '=', 0)
    .limit(1),
);

/** The due deliveries of a webhook, the longest due first. */
export const findDue = allRows<{ webhook_id: string; now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', p('webhook_id'))
    .where('status', '=', sql.lit('pending'))
    .where('due_at', '<=', p('now'))
    .orderBy('due_at')
    .limit(p('limit')),
);

/** Ended deliveries with an id below `before`, the oldest first. */
export const findEnded = allRows<{ before: string; limit: number }>()((db, p) =>
  db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('id', '<', p('before'))
    .where('finished_at', 'is not', null)
    .orderBy('id')
    .limit(p('limit')),
);

const removeDeliveries = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .deleteFrom('webhook_deliveries')
    .where(idIn(dialect, listOf(p, 'ids')))
    .returning(['id', 'webhook_id', 'status']),
);
const removeAttempts = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db.deleteFrom('webhook_attempts').where(isIn(dialect, sql`delivery_id`, listOf(p, 'ids'))),
);

/** Deletes deliveries and their attempts; the rows that this transaction has deleted. */
export async function deleteDeliveries(tx: Transaction, ids: readonly string[]) {
  const deleted = await removeDeliveries(tx, { ids });
  await removeAttempts(tx, { ids: deleted.map(({ id }) => id) });
  return deleted;
}

/** Corrects deliveries that are due too far in the future because the clock was set back. */
export const bringDeliveriesForward = createBringForward({
  name: 'webhook_deliveries',
  waiting: 'pending',
  claimed: 'delivering',
  alsoDue: [],
});

/** Pending deliveries are counted to here. */
export const overdueMax = 10_000;

const countOverdue = firstRow<{ now: number }>()((db, p) =>
  db
    .selectFrom((eb) =>
      eb
        .selectFrom('webhook_deliveries')
        .select('due_at')
        .where('status', '=', sql.lit('pending'))
        .where('due_at', '<=', p('now'))
        .orderBy('due_at')
        .limit(sql.lit(overdueMax))
        .as('overdue'),
    )
    .select((eb) => [
      eb.fn.countAll<number>().as('n'),
      eb.fn.min<number | null>('due_at').as('oldest'),
    ]),
);

/** How many pending deliveries are due, up to 10,000, and since when the oldest of them is due. */
export async function findOverdue(
  db: Handle,
  now: number,
): Promise<{ n: number; oldest: number | undefined }> {
  const row = await countOverdue(db, { now });
  return { n: Number(row?.n ?? 0), oldest: row?.oldest ?? undefined };
}

const counted = (db: Kysely<Tables>, after: RawBuilder<number> | null) =>
  db
    .selectFrom((eb) =>
      eb
        .selectFrom('webhook_deliveries')
        .select('due_at')
        .where('status', '=', after === null ? sql.lit('delivering') : sql.lit('pending'))
        .$if(after !== null, (all) => all.where(sql<SqlBool>`due_at > ${after}`))
        .limit(sql.lit(overdueMax))
        .as('found'),
    )
    .select((eb) => eb.fn.countAll<number>().as('n'));

/** How many pending deliveries are due after a moment, up to 10,000. */
export const countPending = firstRow<{ after: number }>()((db, p) => counted(db, p('after')));

/** How many deliveries are under way, up to 10,000. */
export const countUnderWay = firstRow<Record<never, never>>()((db) => counted(db, null));
