/**
 * Listeners: a client follows its organization's events as a stream and forwards them to an address that the platform
 * cannot reach. A session is a row, so every process records the events that it wants, and any process can resume it.
 * The events come from the outbox, each once and in order. A session ends a minute after its client disconnects. Makes
 * no deliveries.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { requireRoom } from '../../adapters/database/caps.ts';
import type { Database } from '../../adapters/database/database.ts';
import type { EventType } from '../../core/events/events.ts';
import { untilHeard } from '../../core/events/outbox.ts';
import { endOfOutbox, eventsFollowing, type ReaderCursor } from '../../core/events/reader.ts';
import { bind } from '../../kernel/bind.ts';
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

export interface ListenersDeps {
  readonly database: Database;
  readonly clock: Clock;
}

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

export type Listeners = ReturnType<typeof createListeners>;

export function createListeners(deps: ListenersDeps) {
  return bind(deps, { listen, removeExpired });
}

/** Begins or resumes a session. Yields its events until `signal` aborts. */
async function listen(
  deps: ListenersDeps,
  request: ListenRequest,
  signal: AbortSignal,
): Promise<AsyncGenerator<ListenerEvent>> {
  const resumed = await resume(deps, request);
  const { row, cursor } = resumed ?? (await begin(deps, request));
  return follow(deps, { row, cursor, isResumed: resumed !== null }, signal);
}

interface Session {
  readonly row: ListenerRow;
  readonly cursor: ReaderCursor;
}

async function begin({ database, clock }: ListenersDeps, request: ListenRequest): Promise<Session> {
  const { organizationId, apiKeyId, agentId = '', types } = request;
  const row = {
    id: newId(),
    organization_id: organizationId,
    api_key_id: apiKeyId,
    agent_id: agentId,
    events: JSON.stringify(types),
    expires_at: clock.now() + keepMs,
  };
  const cursor = await database.write(async (tx) => {
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
  await untilHeard(database);
  return { row, cursor };
}

/** Resumes a session; null if it has expired or belongs to another key. */
async function resume(
  { database, clock }: ListenersDeps,
  { organizationId, apiKeyId, after }: ListenRequest,
): Promise<Session | null> {
  if (after === null) return null;
  const key = { organization_id: organizationId, id: after.listenerId };
  const row = await findListener(database.read, key, clock.now());
  if (row === undefined || row.api_key_id !== apiKeyId) return null;
  const isThere = await database.write((tx) => renewListener(tx, row, clock.now() + keepMs));
  return isThere ? { row, cursor: after } : null;
}

async function* follow(
  { database, clock }: ListenersDeps,
  { row, cursor: from, isResumed }: Session & { readonly isResumed: boolean },
  signal: AbortSignal,
): AsyncGenerator<ListenerEvent> {
  const types = new Set(JSON.parse(row.events) as EventType[]);
  let cursor = from;
  let renewedAt = clock.monotonic();
  const endsAt = renewedAt + streamMs;
  const position = () => ({ listenerId: row.id, txid: cursor.txid, seq: cursor.seq });
  const begun = { events: [...types], resumed: isResumed };
  yield { position: position(), event: 'listening', data: begun };
  while (!signal.aborted && clock.monotonic() < endsAt) {
    if (clock.monotonic() - renewedAt > renewEveryMs) {
      renewedAt = clock.monotonic();
      const isThere = await database.write((tx) => renewListener(tx, row, clock.now() + keepMs));
      // The session has expired: the client reconnects and gets a new one.
      if (!isThere) return;
    }
    const events = await eventsFollowing(database.read, row.organization_id, cursor, eventsMax);
    for (const event of events) {
      cursor = { txid: event.txid, seq: event.seq };
      const isWanted = row.agent_id === '' || row.agent_id === event.agent_id;
      if (!isWanted || !types.has(event.type as EventType)) continue;
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

/** Deletes expired sessions. */
async function removeExpired({ database, clock }: ListenersDeps): Promise<void> {
  const now = clock.now();
  if (!(await anyExpiredListener(database.read, now))) return;
  await database.write((tx) => deleteExpiredListeners(tx, now));
}
