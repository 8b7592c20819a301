/**
 * Sessions that listen: a client follows the events of its organization as a stream, and forwards them to an address
 * which the platform cannot reach. A session is a row, so every process records the events that it wants, and any
 * process can resume it; the events come from the outbox. Promises each event once and in order while the session
 * lasts, which it does for a minute after its client has gone. Makes no deliveries.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { requireRoom } from '../database/caps.ts';
import type { Database } from '../database/database.ts';
import type { EventType } from '../events/events.ts';
import { untilHeard } from '../events/outbox.ts';
import { endOfOutbox, eventsFollowing, type ReaderCursor } from '../events/reader.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import {
  anyExpiredListener,
  deleteExpiredListeners,
  findListener,
  insertListener,
  type ListenerRow,
  renewListener,
} from './listeners.store.ts';
import { messageBody } from './message.ts';

/** Milliseconds that a session outlives its last renewal. */
const keepMs = 60_000;
const renewEveryMs = 15_000;
/** Milliseconds between two looks at the outbox. */
const lookEveryMs = 200;
/** After that the stream ends, and its client resumes. */
const streamMs = 60 * 60 * 1_000;
/** Events of one look. */
const eventsMax = 100;
/** Sessions of one organization. */
const sessionsMax = 10;

export interface ListenersDeps {
  readonly database: Database;
  readonly clock: Clock;
}

/** Where a session stands. */
export interface ListenerPosition extends ReaderCursor {
  readonly listenerId: string;
}

export interface ListenRequest {
  readonly organizationId: string;
  readonly apiKeyId: string;
  /** Of one agent alone. */
  readonly agentId: string | undefined;
  readonly types: readonly EventType[];
  /** After which event an earlier session is resumed. */
  readonly after: ListenerPosition | null;
}

/** What a session tells its client. */
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

/** Begins or resumes a session; the events from then on, until `signal` aborts. */
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

/** Null where there is no such session of this key any more. */
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
      // The client connects again, and is told that it begins anew.
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
    if (events.length < eventsMax)
      await elapsed(lookEveryMs, undefined, { signal }).catch(() => {});
  }
}

/** Deletes sessions whose clients have not come back. */
async function removeExpired({ database, clock }: ListenersDeps): Promise<void> {
  const now = clock.now();
  if (!(await anyExpiredListener(database.read, now))) return;
  await database.write((tx) => deleteExpiredListeners(tx, now));
}
