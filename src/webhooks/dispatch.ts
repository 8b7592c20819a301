/**
 * Dispatch: makes deliveries of events. One transaction reads the outbox after the cursor, records a
 * delivery for every webhook that is to hear of an event, and moves the cursor; so an event becomes
 * its deliveries exactly once, whatever ends a process and however many there are. Transactions are
 * small, so other writers wait briefly. An organization that makes more deliveries than its share gets
 * a backlog, which waits for its turn while others go on.
 */
import type { Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import {
  type Backlog,
  beginBacklogs,
  dropBacklogs,
  furthestBehind,
  nextBacklog,
  oldestBehind,
  readBacklog,
  withBacklog,
} from '../events/backlogs.ts';
import {
  hasNews,
  isAfter,
  joinReader,
  type OutboxEvent,
  oldestUnread,
  type ReaderCursor,
  readEvents,
  readerCursor,
} from '../events/reader.ts';
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import type { Queue } from '../queue/queue.ts';
import { changeDeliveryCounts, type DeliveryRow, insertDeliveries } from './deliveries.store.ts';
import { messageBody } from './message.ts';
import { areAnyActive, holdActiveWebhooks, type ListeningWebhook } from './webhooks.store.ts';

/** The name under which webhooks follow the outbox. */
const reader = 'webhooks';
/** Events read in one transaction. */
const eventsMax = 2_000;
/** Deliveries made in one transaction, and more only where one event makes more. */
const deliveriesMax = 1_000;
/** Of those, deliveries of one organization: what it may have in one turn. */
const shareMax = 500;
/** Pairs of transactions in one pass: one for all organizations, one for a backlog. */
const roundsMax = 20;
/** Passes that believe that there is no active webhook, before they look again. */
const believedPasses = 10;

export interface Dispatcher {
  /** One pass over the outbox; free of cost while there are no active webhooks. */
  dispatch(): Promise<void>;
  /** To be called once a webhook became active. */
  wake(): void;
  /** How far the outbox has been read; null while nobody listens, and all of it may be deleted. */
  readTo(): Promise<ReaderCursor | null>;
  /** How long the oldest event that is to become deliveries has waited for that, in milliseconds. */
  lagMs(): Promise<number>;
}

export function createDispatcher(parts: {
  database: Database;
  queue: Queue;
  clock: Clock;
  writer: Writer;
}): Dispatcher {
  const { database, queue, clock, writer } = parts;
  let passesToSkip = 0;
  /** The organization whose backlog had its turn last. */
  let lastTurn = '';

  /** Makes deliveries of events; how many of them, from the first on, have become deliveries. */
  async function record(
    tx: Transaction,
    events: readonly OutboxEvent[],
    isBacklog: boolean,
  ): Promise<number> {
    const organizations = [...new Set(events.map((event) => event.organization_id))];
    const skipped = isBacklog ? new Set<string>() : await withBacklog(tx, reader, organizations);
    const concerned = events.filter((event) => !skipped.has(event.organization_id));
    const webhooks = await holdActiveWebhooks(tx, concerned);
    const made = deliveriesOf(events, { webhooks, skipped, isBacklog, now: clock.now() });
    await beginBacklogs(tx, reader, made.backlogs);
    await insert(tx, made.rows);
    return made.read;
  }

  async function insert(tx: Transaction, rows: readonly DeliveryRow[]): Promise<void> {
    const inserted = await insertDeliveries(tx, rows);
    const made = rows.filter(({ id }) => inserted.has(id));
    await changeDeliveryCounts(
      tx,
      writer,
      made.map(({ webhook_id }) => ({ kind: { webhook_id }, from: null, to: 'pending' })),
    );
    tx.afterCommit(() => {
      queue.sendHints(
        'webhooks',
        made.map(({ id }) => ({ id, generation: 0, delayMs: 0 })),
      );
    });
  }

  /** Reads what is new of all organizations without a backlog; whether there was anything. */
  async function readNews(): Promise<boolean> {
    // A look costs less than a transaction, and mostly there is nothing.
    if (!(await hasNews(database.read, reader))) return false;
    return database.write((tx) =>
      readEvents(tx, reader, eventsMax, (events) => record(tx, events, false)),
    );
  }

  /** Gives the next organization with a backlog its turn; whether there was one. */
  async function takeTurn(): Promise<boolean> {
    const organizationId = await nextBacklog(database.read, reader, lastTurn);
    if (organizationId === undefined) return false;
    lastTurn = organizationId;
    return database.write((tx) =>
      readBacklog(tx, reader, organizationId, shareMax, (events) => record(tx, events, true)),
    );
  }

  return {
    async dispatch() {
      if (passesToSkip > 0) {
        passesToSkip--;
        return;
      }
      if (!(await areAnyActive(database.read))) {
        passesToSkip = believedPasses;
        return;
      }
      for (let round = 0; round < roundsMax; round++) {
        const isMore = [await readNews(), await takeTurn()].includes(true);
        if (!isMore) return;
      }
    },

    wake() {
      passesToSkip = 0;
    },

    async readTo() {
      if (!(await areAnyActive(database.read))) return null;
      const behind = await furthestBehind(database.read, reader);
      return behind ?? (await readerCursor(database.read, reader)) ?? null;
    },

    async lagMs() {
      // Where nobody listens, nothing waits.
      if (!(await areAnyActive(database.read))) return 0;
      const behind = await furthestBehind(database.read, reader);
      const recordedAt =
        behind === undefined
          ? await oldestUnread(database.read, reader)
          : await oldestBehind(database.read, behind);
      return recordedAt === undefined ? 0 : Math.max(0, clock.now() - recordedAt);
    },
  };
}

/**
 * The place in the outbox from which on a webhook that becomes active gets events. To be asked for
 * before the webhook is locked, as dispatching takes the two in this order.
 */
export function placeOfNow(tx: Transaction): Promise<string> {
  return joinReader(tx, reader, async () => {
    if (await areAnyActive(tx)) return false;
    await dropBacklogs(tx, reader);
    return true;
  });
}

interface Made {
  readonly rows: DeliveryRow[];
  /** How many of the events, from the first on, were dealt with. */
  readonly read: number;
  /** Organizations that have used up their share, and where their events are left. */
  readonly backlogs: Backlog[];
}

/**
 * Deliveries of the first events, as many as are made at a time. Events of organizations that are
 * `skipped` concern nobody. In a backlog, which is of one organization, the share ends the reading; else
 * it begins a backlog.
 */
function deliveriesOf(
  events: readonly OutboxEvent[],
  {
    webhooks,
    skipped,
    isBacklog,
    now,
  }: {
    webhooks: readonly ListeningWebhook[];
    skipped: ReadonlySet<string>;
    isBacklog: boolean;
    now: number;
  },
): Made {
  const byAgent = Map.groupBy(webhooks.map(listener), ({ agent }) => agent);
  const rows: DeliveryRow[] = [];
  const shares = new Map<string, number>();
  const backlogs = new Map<string, Backlog>();
  let read = 0;
  for (const event of events) {
    const { organization_id: organizationId, agent_id: agentId } = event;
    const listeners = byAgent.get(`${organizationId}/${agentId}`) ?? [];
    const isPassedBy = skipped.has(organizationId) || backlogs.has(organizationId);
    const hearing = isPassedBy
      ? []
      : listeners.filter(({ types, since }) => types.has(event.type) && isAfter(event, since));
    if (hearing.length > 0) {
      const share = shares.get(organizationId) ?? 0;
      const isShareUsedUp = share > 0 && share + hearing.length > shareMax;
      if (isShareUsedUp && isBacklog) break;
      if (isShareUsedUp) {
        backlogs.set(organizationId, { organizationId, at: justBefore(event) });
      } else {
        if (rows.length > 0 && rows.length + hearing.length > deliveriesMax) break;
        shares.set(organizationId, share + hearing.length);
        rows.push(...hearing.map(deliveriesTo(event, now)));
      }
    }
    read++;
  }
  return { rows, read, backlogs: [...backlogs.values()] };
}

/** The place that the event is the first after. */
function justBefore({ txid, seq }: OutboxEvent): ReaderCursor {
  return { txid, seq: seq - 1 };
}

/** Makes the delivery of an event to a webhook. */
function deliveriesTo(event: OutboxEvent, now: number) {
  const { id, type, agent_id: agentId, data, created_at: createdAt } = event;
  const body = messageBody({ id, type, agentId, data, createdAt });
  const common = { event_id: id, event: type, body, subject: subjectOf(data) };
  return ({ webhookId }: { webhookId: string }) =>
    newDelivery({ ...common, webhook_id: webhookId }, now);
}

/** What an event tells of: a job, or a conversation alone. */
function subjectOf(data: string): string | null {
  const { job_id, conversation_id } = JSON.parse(data) as Record<string, string | null | undefined>;
  return job_id ?? conversation_id ?? null;
}

function listener({ id, organization_id, agent_id, events, active_since }: ListeningWebhook) {
  return {
    agent: `${organization_id}/${agent_id}`,
    webhookId: id,
    types: new Set(JSON.parse(events) as string[]),
    since: active_since,
  };
}

/** A delivery that is due now. */
export function newDelivery(
  fields: Pick<DeliveryRow, 'webhook_id' | 'event_id' | 'event' | 'body'> &
    Partial<Pick<DeliveryRow, 'is_test' | 'redelivery_of' | 'subject'>>,
  now: number,
): DeliveryRow {
  return {
    id: newId(),
    status: 'pending',
    attempts: 0,
    lost: 0,
    epoch: 0,
    due_at: now,
    started_at: null,
    is_test: 0,
    redelivery_of: null,
    created_at: now,
    finished_at: null,
    subject: null,
    ...fields,
  };
}
