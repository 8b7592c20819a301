/** The queries on calls of models for embeddings that hold tokens. */
import type { Selectable } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { allRows, statement } from '../../adapters/database/statement.ts';
import type { EmbeddingCallsTable } from '../../adapters/database/tables.ts';

export type EmbeddingCallRow = Selectable<EmbeddingCallsTable>;

export const insertCall = (tx: Transaction, row: EmbeddingCallRow) =>
  tx.insert('embedding_calls', [row]);

const remove = statement<{ id: string }>()((db, p) =>
  db.deleteFrom('embedding_calls').where('id', '=', p('id')).returningAll(),
);

/** Deletes and returns a call; undefined if another transaction has deleted it. */
export function takeCall(
  tx: Transaction,
  { id }: Pick<EmbeddingCallRow, 'id'>,
): Promise<EmbeddingCallRow | undefined> {
  return tx.first(remove, { id });
}

/** Calls whose process must have ended by now. */
export const listLost = allRows<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('embedding_calls')
    .select('id')
    .where('lost_at', '<', p('now'))
    .orderBy('lost_at')
    .limit(p('limit')),
);

/** Detaches the calls of a deleted agent from a new agent with the same id. */
export async function setAsideCalls(
  tx: Transaction,
  organizationId: string,
  agentId: string,
): Promise<void> {
  await tx.kysely
    .updateTable('embedding_calls')
    .set({ owner_kind: 'deleted_agent' })
    .where('organization_id', '=', organizationId)
    .where('owner_kind', '=', 'agent')
    .where('owner_id', '=', agentId)
    .execute();
}
