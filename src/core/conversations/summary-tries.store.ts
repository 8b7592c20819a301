/** The queries on the failed summaries of conversations. */
import type { Selectable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import type { ConversationsTable } from '../../adapters/database/tables.ts';

const columns = ['failed_summaries', 'next_summary_at', 'failed_summaries_version'] as const;
type SummaryTries = Pick<Selectable<ConversationsTable>, (typeof columns)[number]>;

export function findSummaryTries(
  { kysely }: Handle,
  conversationId: string,
): Promise<SummaryTries | undefined> {
  return kysely
    .selectFrom('conversations')
    .select(columns)
    .where('id', '=', conversationId)
    .executeTakeFirst();
}

/** Like `findSummaryTries`; the conversation stays locked until the transaction ends. */
export function lockSummaryTries(
  tx: Transaction,
  conversationId: string,
): Promise<SummaryTries | undefined> {
  const query = tx.kysely
    .selectFrom('conversations')
    .select(columns)
    .where('id', '=', conversationId);
  return locked(tx.dialect, query).executeTakeFirst();
}

export async function setSummaryTries(
  tx: Transaction,
  conversationId: string,
  tries: SummaryTries,
): Promise<void> {
  await tx.kysely
    .updateTable('conversations')
    .set(tries)
    .where('id', '=', conversationId)
    .execute();
}
