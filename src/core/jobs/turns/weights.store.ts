/** The queries on the weights of organizations. */
import { type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../../../adapters/database/database.ts';

/** Organizations whose weight differs from 1. */
export function listWeights({ kysely }: Handle) {
  return (
    kysely
      .selectFrom('organizations')
      .select(['id', 'weight'])
      // A literal, for the index of these.
      .where(sql<SqlBool>`weight <> 1`)
      .execute()
  );
}

export async function findWeight({ kysely }: Handle, id: string): Promise<number | undefined> {
  const row = await kysely
    .selectFrom('organizations')
    .select('weight')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.weight;
}

export async function updateWeight(tx: Transaction, id: string, weight: number): Promise<void> {
  await tx.kysely.updateTable('organizations').set({ weight }).where('id', '=', id).execute();
}
