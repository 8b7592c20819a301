/**
 * Listeners: a client follows its organization's events as a stream and forwards them to an address that the platform
 * cannot reach. A session is a row, so every process records the events that it wants, and any process can resume it.
 * The events come from the outbox, each once and in order. A session ends a minute after its client disconnects. Makes
 * no deliveries.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { requireRoom } from '../../adapters/database/caps.ts';
import type { Database } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import type { EventType } from '../../core/events/events.ts';
import { awaitEarlierAppenders } from '../../core/events/outbox.ts';
import {
  endOfOutbox,
  eventsFollowing,
  type ReaderCursor,
} from '../../core/events/reader-queries.ts';
import type { Clock } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import {
  anyExpiredListener,
  deleteExpiredListeners,
  findListener,
  insertListener,
  type ListenerRow,
  renewListener,
} from './listeners.store.ts';
import { messageBody } from './message.ts';

/** A session expires this many milliseconds after its last renewal. */
const keepMs = 60_000;
const renewEveryMs = 15_000;
/** Milliseconds between two reads of the outbox. */
const pollMs = 200;
/** Milliseconds after which the stream ends and its client resumes. */
const streamMs = 60 * 60 * 1_000;
/** Events in one read. */
const eventsMax = 100;
/** Sessions of one organization. */
const sessionsMax = 10;

/** The position of a session in the outbox. */
export interface ListenerPosition extends ReaderCursor {
  readonly listenerId: string;
}

export interface ListenRequest {
  readonly organizationId: string;
  readonly apiKeyId: string;
  /** Only events of this agent. */
  readonly agentId: string | undefined;
  readonly types: readonly EventType[];
  /** The last event of an earlier session that is to be resumed; null begins a new session. */
  readonly after: ListenerPosition | null;
}

/** An event of the stream to the client. */
export type ListenerEvent = {
  readonly position: ListenerPosition;
} & (
  | {
      readonly event: 'listening';
      readonly data: { events: readonly EventType[]; resumed: boolean };
    }
  | {
      readonly event: 'delivery';
      readonly data: { id: string; event: string; agent_id: string; body: string };
    }
);

interface Session {
  readonly row: ListenerRow;
  readonly cursor: ReaderCursor;
}

export class Listeners {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor({ database, clock }: Context) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Begins or resumes a session. Yields its events until `signal` aborts. */
  async listen(
    request: ListenRequest,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<ListenerEvent>> {
    const resumed = await this.#resume(request);
    const session = resumed ?? (await this.#begin(request));
    return this.#follow(session, resumed !== null, signal);
  }

  /** Deletes expired sessions. */
  async removeExpired(): Promise<void> {
    const now = this.#clock.now();
    if (!(await anyExpiredListener(this.#database.read, now))) return;
    await this.#database.write((tx) => deleteExpiredListeners(tx, now));
  }

  async #begin({ organizationId, apiKeyId, agentId, types }: ListenRequest): Promise<Session> {
    const row = {
      id: newId(),
      organization_id: organizationId,
      api_key_id: apiKeyId,
      agent_id: agentId ?? '',
      events: JSON.stringify(types),
      expires_at: this.#clock.now() + keepMs,
    };
    const cursor = await this.#database.write(async (tx) => {
      await requireRoom(tx, organizationId, [
        {
          table: 'webhook_listeners',
          things: 'sessions that listen for events',
          remedy: 'end one and wait a minute',
          max: sessionsMax,
        },
      ]);
      await insertListener(tx, row);
      return endOfOutbox(tx);
    });
    await awaitEarlierAppenders(this.#database);
    return { row, cursor };
  }

  /** Resumes a session; null if it has expired or belongs to another key. */
  async #resume({ organizationId, apiKeyId, after }: ListenRequest): Promise<Session | null> {
    if (after === null) return null;
    const key = { organization_id: organizationId, id: after.listenerId };
    const row = await findListener(this.#database.read, key, this.#clock.now());
    if (row === undefined || row.api_key_id !== apiKeyId) return null;
    return (await this.#renew(row)) ? { row, cursor: after } : null;
  }

  /** Whether the session has not expired. */
  #renew(row: ListenerRow): Promise<boolean> {
    return this.#database.write((tx) => renewListener(tx, row, this.#clock.now() + keepMs));
  }

  async *#follow(
    { row, cursor: from }: Session,
    isResumed: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<ListenerEvent> {
    const types = new Set(JSON.parse(row.events) as EventType[]);
    let cursor = from;
    let renewedAt = this.#clock.monotonic();
    const endsAt = renewedAt + streamMs;
    const position = () => ({ listenerId: row.id, txid: cursor.txid, seq: cursor.seq });
    const begun = { events: [...types], resumed: isResumed };
    yield { position: position(), event: 'listening', data: begun };
    while (!signal.aborted && this.#clock.monotonic() < endsAt) {
      if (this.#clock.monotonic() - renewedAt > renewEveryMs) {
        renewedAt = this.#clock.monotonic();
        // If it has expired, the client reconnects and gets a new one.
        if (!(await this.#renew(row))) return;
      }
      const events = await eventsFollowing(
        this.#database.read,
        row.organization_id,
        cursor,
        eventsMax,
      );
      for (const event of events) {
        cursor = { txid: event.txid, seq: event.seq };
        const isOfAgent = row.agent_id === '' || row.agent_id === event.agent_id;
        if (!isOfAgent || !types.has(event.type as EventType)) continue;
        const { id, type, agent_id: agentId, data, created_at: createdAt } = event;
        const body = messageBody({ id, type, agentId, data, createdAt });
        yield {
          position: position(),
          event: 'delivery',
          data: { id, event: type, agent_id: agentId, body },
        };
      }
      if (events.length < eventsMax) await elapsed(pollMs, undefined, { signal }).catch(() => {});
    }
  }
}
