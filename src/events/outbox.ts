/**
 * The outbox: an event is a row written in the transaction that makes it true, so it exists exactly
 * when what it tells of does. Readers follow by cursor. Nothing here delivers anything.
 */
import type { Transaction } from '../database/database.ts';
import { newId } from '../kernel/ids.ts';
import type { NewEvent } from './events.ts';

/** Records events, in order. */
export async function appendEvents(
  tx: Transaction,
  events: readonly NewEvent[],
  now: number,
): Promise<void> {
  await tx.insert(
    'events',
    events.map((event) => ({
      id: newId(),
      organization_id: event.organizationId,
      agent_id: event.agentId,
      type: event.type,
      data: JSON.stringify(event.data),
      created_at: now,
    })),
  );
}
