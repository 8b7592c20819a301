/**
 * The outbox: an event is a row that is written in the same transaction as the change that it reports,
 * so both exist or neither does. Readers follow by cursor. The dispatcher delivers events, not this file.
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
