/** The queries on models of embeddings: which one is current, its dimensions, and who makes its vectors. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { firstRow, statement } from '../../adapters/database/statement.ts';

/** The row of a model by its name, the newest one; undefined before it was first activated. */
export const findModel = firstRow<{ model: string }>()((db, p) =>
  db
    .selectFrom('embedding_models')
    .select(['id', 'dimensions', 'activated_at'])
    .where('model', '=', p('model'))
    .orderBy('id', 'desc')
    .limit(sql.lit(1)),
);

/** The model that was activated last. */
export const findActiveModel = firstRow<object>()((db) =>
  db
    .selectFrom('embedding_models')
    .select(['id', 'model', 'dimensions', 'activated_at'])
    .orderBy('activated_at', 'desc')
    .orderBy('id', 'desc')
    .limit(sql.lit(1)),
);

export interface EmbeddingModel {
  readonly id: number;
  readonly model: string;
  readonly dimensions: number | null;
}

/** Serializes activations, so that processes that start together insert one row. */
export async function lockModels(tx: Transaction): Promise<void> {
  if (tx.dialect === 'sqlite') return;
  await sql`lock table embedding_models in share row exclusive mode`.execute(tx.kysely);
}

export async function insertModel(
  tx: Transaction,
  { model, dimensions, at }: { model: string; dimensions: number | null; at: number },
): Promise<void> {
  await tx.kysely
    .insertInto('embedding_models')
    .values({ model, dimensions, activated_at: at })
    .execute();
}

export async function activateModel(tx: Transaction, id: number, at: number): Promise<void> {
  await tx.kysely
    .updateTable('embedding_models')
    .set({ activated_at: at })
    .where('id', '=', id)
    .execute();
}

export async function setDimensions(tx: Transaction, id: number, dimensions: number) {
  await tx.kysely
    .updateTable('embedding_models')
    .set({ dimensions })
    .where('id', '=', id)
    .execute();
}

const lease = statement<{ id: number; holder: string; now: number; until: number }>()((db, p) =>
  db
    .updateTable('embedding_models')
    .set({ holder: p('holder'), leased_until: p('until') })
    .where('id', '=', p('id'))
    .where(({ eb, or }) => or([eb('holder', '=', p('holder')), eb('leased_until', '<', p('now'))])),
);

/** Takes or renews the lease of a model; returns whether this process has it. */
export async function takeLease(
  tx: Transaction,
  asked: { id: number; holder: string; now: number; until: number },
): Promise<boolean> {
  const [changed] = await tx.changes(lease, [asked]);
  return changed === 1;
}

/** The other models that memories have vectors of; 0 stands for no vector. */
export async function findEarlierModels(db: Handle, model: number): Promise<number[]> {
  const { rows } = await sql<{ embedding: number | null }>`
    with recursive found(embedding) as (
      select min(embedding) from memories
      union all
      select (select min(embedding) from memories where embedding > found.embedding)
      from found where found.embedding is not null
    )
    select embedding from found where embedding is not null and embedding <> ${model}`.execute(
    db.kysely,
  );
  return rows.map(({ embedding }) => Number(embedding));
}
