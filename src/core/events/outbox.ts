/**
 * The outbox: an event is a row that is written in the same transaction as the change that it reports,
 * so both exist or neither does. An event to which no webhook and no session that listens is subscribed is not written. Readers follow by cursor.
 * The dispatcher delivers events, not this file.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import type { NewEvent } from './events.ts';
import {
  type EventRow,
  findAppenders,
  findSubscribedTypes,
  insertSubscribed,
} from './outbox.store.ts';

/** Between two checks of the transactions that a new webhook waits for. */
const waitMs = 10;
/** They end sooner: PostgreSQL ends a statement and an idle transaction after ten seconds. */
const waitMaxMs = 15_000;

/**
 * Records those of the events to which an active webhook is subscribed, in order. `awaitEarlierAppenders` makes up for
 * webhooks that are being created, which this transaction cannot see.
 */
export function appendEvents(
  tx: Transaction,
  events: readonly NewEvent[],
  now: number,
): Promise<void> {
  return appendEventsOf(tx, events, happened, now);
}

/** What has happened to subjects, such as jobs that have ended, and to whose agent. */
interface Happenings<Subject> {
  agentOf(subject: Subject): Agent;
  eventsOf(subject: Subject): readonly NewEvent[];
}

interface Agent {
  readonly organization_id: string;
  readonly agent_id: string;
}

const happened: Happenings<NewEvent> = {
  agentOf: ({ organizationId, agentId }) => ({
    organization_id: organizationId,
    agent_id: agentId,
  }),
  eventsOf: (event) => [event],
};

/** Like `appendEvents`; on SQLite no event is made of the subjects of an agent without webhooks. */
export async function appendEventsOf<Subject>(
  tx: Transaction,
  subjects: readonly Subject[],
  { agentOf, eventsOf }: Happenings<Subject>,
  now: number,
): Promise<void> {
  if (tx.dialect === 'postgres') {
    await insertSubscribed(tx, subjects.flatMap(eventsOf).map(rowOf(now)));
    return;
  }
  const subscribed: NewEvent[] = [];
  const known = new Map<string, string>();
  let last: Agent | undefined;
  let types = '';
  for (const subject of subjects) {
    const agent = agentOf(subject);
    // Mostly all subjects are of one agent, and a comparison costs less than the text of a key.
    if (last?.agent_id !== agent.agent_id || last.organization_id !== agent.organization_id) {
      types = await subscribedTypesOf(tx, agent, known);
      last = agent;
    }
    if (types === '') continue;
    for (const event of eventsOf(subject)) {
      if (types.includes(`"${event.type}"`)) subscribed.push(event);
    }
  }
  await tx.insert('events', subscribed.map(rowOf(now)));
}

/** The types of events to which an agent's webhooks are subscribed, read once in a batch. */
async function subscribedTypesOf(
  tx: Transaction,
  { organization_id, agent_id }: Agent,
  known: Map<string, string>,
): Promise<string> {
  const key = `${organization_id}/${agent_id}`;
  const types =
    known.get(key) ??
    (await findSubscribedTypes(tx, { organizationId: organization_id, agentId: agent_id }));
  known.set(key, types);
  return types;
}

const rowOf =
  (now: number) =>
  (event: NewEvent): EventRow => ({
    id: newId(),
    organization_id: event.organizationId,
    agent_id: event.agentId,
    type: event.type,
    data: JSON.stringify(event.data),
    created_at: now,
  });

/**
 * Resolves when every event that is committed from now on is recorded for the webhooks and sessions that are
 * committed by now. On PostgreSQL it waits for the transactions that may have appended before that: they did not see
 * a new webhook. On SQLite, where one transaction follows another, there are none.
 */
export async function awaitEarlierAppenders({ read }: Pick<Database, 'read'>): Promise<void> {
  if (read.dialect === 'sqlite') return;
  const end = performance.now() + waitMaxMs;
  let before = await findAppenders(read);
  while (before.length > 0) {
    if (performance.now() > end) {
      throw new PlatformError('service_unavailable', 'A transaction does not end', {
        retryAfter: 1,
      });
    }
    await elapsed(waitMs);
    const open = new Set(await findAppenders(read));
    before = before.filter((one) => open.has(one));
  }
}
