/**
 * Dispatch: turns events into deliveries. One transaction reads the outbox after the cursor, records a
 * delivery for every subscribed webhook, and moves the cursor. So each event is dispatched exactly once,
 * also with several processes and after a crash. Transactions are small, so other writers wait briefly.
 * An organization with more deliveries than its share gets a backlog; backlogs take turns.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import {
  type Backlog,
  beginBacklogs,
  nextBacklog,
  readBacklog,
  withBacklog,
} from '../../core/events/backlogs.ts';
import {
  hasUnread,
  isAfter,
  joinReader,
  oldestUnread,
  readEvents,
  webhooksReader as reader,
} from '../../core/events/reader.ts';
import {
  dropBacklogs,
  furthestBehind,
  type OutboxEvent,
  oldestBehind,
  type ReaderCursor,
  readerCursor,
} from '../../core/events/reader-queries.ts';
import { allAgents } from '../../kernel/ids.ts';
import type { DeliveryRow } from './deliveries.store.ts';
import { messageBody } from './message.ts';
import { addDeliveries, newDelivery } from './new-deliveries.ts';
import { areAnyActive, type ListeningWebhook, lockActiveWebhooks } from './webhooks.store.ts';

/** Events read in one transaction. */
const eventsMax = 2_000;
/** Deliveries made in one transaction; a single event may make more. */
const deliveriesMax = 1_000;
/** The share of one organization in them. */
const shareMax = 500;
/** Pairs of transactions in one pass: one for the new events of all organizations, one for a backlog. */
const roundsMax = 20;
/** Passes to skip after one has found no active webhook. */
const skippedPasses = 10;

export class Dispatcher {
  readonly #context: Context;
  #passesToSkip = 0;
  /** The organization whose backlog had the last turn. */
  #lastTurn = '';

  constructor(context: Context) {
    this.#context = context;
  }

  /** Makes one pass over the outbox; nearly free while no webhook is active. */
  async dispatch(): Promise<void> {
    if (this.#passesToSkip > 0) {
      this.#passesToSkip--;
      return;
    }
    if (!(await areAnyActive(this.#context.database.read))) {
      this.#passesToSkip = skippedPasses;
      return;
    }
    for (let round = 0; round < roundsMax; round++) {
      const isMore = [await this.#dispatchNew(), await this.#dispatchBacklog()];
      if (!isMore.includes(true)) return;
    }
  }

  /** Ends the skipping of passes; call it when a webhook has become active. */
  wake(): void {
    this.#passesToSkip = 0;
  }

  /** How far the outbox has been read; null while no webhook is active, so all of it may be deleted. */
  async readTo(): Promise<ReaderCursor | null> {
    const { read } = this.#context.database;
    if (!(await areAnyActive(read))) return null;
    // The cursor first: in the other order a backlog that begins between the two reads would be
    // missed, and retention would delete the events that wait in it.
    const cursor = await readerCursor(read, reader);
    return (await furthestBehind(read, reader)) ?? cursor ?? null;
  }

  /** How long the oldest event that is not dispatched has waited, in milliseconds. */
  async lagMs(): Promise<number> {
    const { database, clock } = this.#context;
    const { read } = database;
    // Without an active webhook, no event waits.
    if (!(await areAnyActive(read))) return 0;
    const behind = await furthestBehind(read, reader);
    const recordedAt =
      behind === undefined ? await oldestUnread(read, reader) : await oldestBehind(read, behind);
    return recordedAt === undefined ? 0 : Math.max(0, clock.now() - recordedAt);
  }

  /** Dispatches new events of organizations without a backlog; whether there were any. */
  async #dispatchNew(): Promise<boolean> {
    const { database } = this.#context;
    // This query costs less than a transaction, and mostly there is no new event.
    if (!(await hasUnread(database.read, reader))) return false;
    return database.write((tx) =>
      readEvents(tx, reader, eventsMax, (events) => this.#record(tx, events, false)),
    );
  }

  /** Dispatches a share of the next backlog; whether there was one. */
  async #dispatchBacklog(): Promise<boolean> {
    const { database } = this.#context;
    const organizationId = await nextBacklog(database.read, reader, this.#lastTurn);
    if (organizationId === undefined) return false;
    this.#lastTurn = organizationId;
    return database.write((tx) =>
      readBacklog(tx, reader, organizationId, shareMax, (events) => this.#record(tx, events, true)),
    );
  }

  /** Records the deliveries of events, in order; how many of the events it has handled. */
  async #record(
    tx: Transaction,
    events: readonly OutboxEvent[],
    isBacklog: boolean,
  ): Promise<number> {
    const organizations = [...new Set(events.map((event) => event.organization_id))];
    const skipped = isBacklog ? new Set<string>() : await withBacklog(tx, reader, organizations);
    const relevant = events.filter((event) => !skipped.has(event.organization_id));
    const webhooks = await lockActiveWebhooks(tx, relevant);
    const now = this.#context.clock.now();
    const made = deliveriesOf(events, { webhooks, skipped, isBacklog, now });
    await beginBacklogs(tx, reader, made.backlogs);
    await addDeliveries(this.#context, tx, made.rows);
    return made.read;
  }
}

/**
 * The place in the outbox from which a webhook that becomes active now gets events. Call it before
 * locking the webhook: the dispatcher locks the cursor and the webhooks in this order.
 */
export function currentPlace(tx: Transaction): Promise<string> {
  return joinReader(tx, reader, async () => {
    if (await areAnyActive(tx)) return false;
    await dropBacklogs(tx, reader);
    return true;
  });
}

interface Dispatched {
  readonly rows: DeliveryRow[];
  /** How many of the events, in order, were handled. */
  readonly read: number;
  /** Organizations that have used up their share, with the last event that was handled for each. */
  readonly backlogs: Backlog[];
}

/**
 * The deliveries of the first events, up to the limits above. Events of `skipped` organizations make no
 * deliveries. When an organization has used up its share, it gets a backlog; in a backlog, reading ends.
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
): Dispatched {
  const byAgent = Map.groupBy(webhooks.map(listener), ({ agent }) => agent);
  const rows: DeliveryRow[] = [];
  const shares = new Map<string, number>();
  const backlogs = new Map<string, Backlog>();
  let read = 0;
  for (const event of events) {
    const { organization_id: organizationId, agent_id: agentId } = event;
    const listeners = [agentId, allAgents].flatMap(
      (agent) => byAgent.get(`${organizationId}/${agent}`) ?? [],
    );
    const isSkipped = skipped.has(organizationId) || backlogs.has(organizationId);
    const subscribed = isSkipped
      ? []
      : listeners.filter(({ types, since }) => types.has(event.type) && isAfter(event, since));
    if (subscribed.length > 0) {
      const share = shares.get(organizationId) ?? 0;
      const isShareUsedUp = share > 0 && share + subscribed.length > shareMax;
      if (isShareUsedUp && isBacklog) break;
      if (isShareUsedUp) {
        backlogs.set(organizationId, { organizationId, at: justBefore(event) });
      } else {
        if (rows.length > 0 && rows.length + subscribed.length > deliveriesMax) break;
        shares.set(organizationId, share + subscribed.length);
        rows.push(...subscribed.map(deliveryMaker(event, now)));
      }
    }
    read++;
  }
  return { rows, read, backlogs: [...backlogs.values()] };
}

/** The cursor whose next event is this one. */
function justBefore({ txid, seq }: OutboxEvent): ReaderCursor {
  return { txid, seq: seq - 1 };
}

/** Returns the function that makes the delivery of an event to one webhook. */
function deliveryMaker(event: OutboxEvent, now: number) {
  const { id, type, agent_id: agentId, data, created_at: createdAt } = event;
  const body = messageBody({ id, type, agentId, data, createdAt });
  const common = { event_id: id, event: type, body, subject: subjectOf(data) };
  return ({ webhookId }: { webhookId: string }) =>
    newDelivery({ ...common, webhook_id: webhookId }, now);
}

/** The job of an event, or its conversation when it names no job. */
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
