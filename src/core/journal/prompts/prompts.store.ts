/** Every query on kept prompts. */
import { type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../../adapters/database/statement.ts';
import type { PromptsTable } from '../../../adapters/database/tables.ts';

export type PromptRow = Selectable<PromptsTable>;

export function insertPrompt(tx: Transaction, row: PromptRow): Promise<void> {
  return tx.insert('prompts', [row]);
}

const take = statement<{ organization_id: string; bytes: number; max: number }>()((db, p) =>
  db
    .insertInto('prompt_totals')
    .values({ organization_id: p('organization_id'), bytes: p('bytes') })
    .onConflict((conflict) =>
      conflict
        .column('organization_id')
        .doUpdateSet({ bytes: sql<number>`prompt_totals.bytes + excluded.bytes` })
        .where(sql<boolean>`prompt_totals.bytes + excluded.bytes <= ${p('max')}`),
    )
    .returning('bytes'),
);

/** Counts bytes for an organization; false where it would have more than `max`, and nothing is counted. */
export async function takeBytes(
  tx: Transaction,
  organizationId: string,
  bytes: number,
  max: number,
): Promise<boolean> {
  if (bytes > max) return false;
  return (await tx.all(take, { organization_id: organizationId, bytes, max })).length > 0;
}

const give = statement<{ organization_id: string; bytes: number }>()((db, p) =>
  db
    .updateTable('prompt_totals')
    .set((eb) => ({ bytes: eb('bytes', '-', p('bytes')) }))
    .where('organization_id', '=', p('organization_id')),
);

/** Counts the bytes of rows that are gone no more, in the order of the organizations. */
async function giveBytes(
  tx: Transaction,
  rows: readonly Pick<PromptRow, 'organization_id' | 'kept_bytes'>[],
): Promise<void> {
  const sums = new Map<string, number>();
  for (const { organization_id: id, kept_bytes } of rows) {
    sums.set(id, (sums.get(id) ?? 0) + Number(kept_bytes));
  }
  const given = [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1));
  await tx.each(
    give,
    given.map(([organization_id, bytes]) => ({ organization_id, bytes })),
  );
}

const remove = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .deleteFrom('prompts')
    .where(isIn(dialect, sql`job_id`, listOf(p, 'ids')))
    .returning(['organization_id', 'kept_bytes']),
);

/** Deletes the prompts of jobs. */
export async function deletePrompts(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  if (jobIds.length === 0) return;
  await giveBytes(tx, await tx.all(remove, { ids: jobIds }));
}

/** What is kept of the prompt of a step. */
export const findPrompt = firstRow<{ job_id: string; n: number }>()((db, p) =>
  db.selectFrom('prompts').selectAll().where('job_id', '=', p('job_id')).where('n', '=', p('n')),
);

/** The last kept prompt of a dialogue before a step: of its turns, or of its summaries, which have turn 0. */
export function findPromptBefore(
  db: Handle,
  { job_id, generation, turn }: Pick<PromptRow, 'job_id' | 'generation' | 'turn'>,
  before: number,
): Promise<PromptRow | undefined> {
  return db.kysely
    .selectFrom('prompts')
    .selectAll()
    .where('job_id', '=', job_id)
    .where('n', '<', before)
    .where('generation', '=', generation)
    .where('turn', turn === 0 ? '=' : '>', 0)
    .where('state', '=', 'kept')
    .orderBy('n', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** The stored prompts of these steps of a job. */
export function listBodies(db: Handle, jobId: string, numbers: readonly number[]) {
  return db.kysely
    .selectFrom('prompts')
    .select(['n', 'body'])
    .where('job_id', '=', jobId)
    .where('n', 'in', numbers)
    .where('body', 'is not', null)
    .execute();
}

/** The stored prompts of a dialogue that go on from one another, from one step to another. */
export function listChain(
  db: Handle,
  {
    job_id,
    generation,
    chain_from,
    n,
  }: Pick<PromptRow, 'job_id' | 'generation' | 'chain_from' | 'n'>,
) {
  return db.kysely
    .selectFrom('prompts')
    .select(['n', 'body'])
    .where('job_id', '=', job_id)
    .where('n', '>=', chain_from)
    .where('n', '<=', n)
    .where('generation', '=', generation)
    .where('chain_from', '=', chain_from)
    .where('body', 'is not', null)
    .orderBy('n')
    .execute();
}

/** What is kept of the prompts of a page of steps. */
export const listStates = allRows<{ job_id: string; first: number; last: number }>()((db, p) =>
  db
    .selectFrom('prompts')
    .select(['n', 'state'])
    .where('job_id', '=', p('job_id'))
    .where('n', '>=', p('first'))
    .where('n', '<=', p('last')),
);

/** The organizations that have kept prompts, and their bytes. */
export function listTotals(db: Handle) {
  return db.kysely
    .selectFrom('prompt_totals')
    .select(['organization_id', 'bytes'])
    .where('bytes', '>', 0)
    .execute();
}

export async function bytesKept(db: Handle, organizationId: string): Promise<number> {
  const row = await db.kysely
    .selectFrom('prompt_totals')
    .select('bytes')
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  return Number(row?.bytes ?? 0);
}

/** Jobs of an organization with kept prompts, none of which is younger than `before`. */
export async function listExpiredJobs(
  tx: Transaction,
  organizationId: string,
  before: number,
  limit: number,
): Promise<string[]> {
  const rows = await tx.kysely
    .selectFrom('prompts')
    .select('job_id')
    .where('organization_id', '=', organizationId)
    .where('state', '=', 'kept')
    .where('created_at', '<', before)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('prompts as later')
            .select('later.n')
            .whereRef('later.job_id', '=', 'prompts.job_id')
            .where('later.created_at', '>=', before),
        ),
      ),
    )
    .groupBy('job_id')
    .limit(limit)
    .execute();
  return rows.map(({ job_id }) => job_id);
}

/** Removes the text of the prompts of jobs; the rows say that it was kept. */
export async function expirePrompts(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  if (jobIds.length === 0) return;
  const rows = await tx.kysely
    .selectFrom('prompts')
    .select(['organization_id', 'kept_bytes'])
    .where('job_id', 'in', jobIds)
    .where('state', '=', 'kept')
    .$if(tx.dialect === 'postgres', (query) => query.orderBy('job_id').orderBy('n').forUpdate())
    .execute();
  await tx.kysely
    .updateTable('prompts')
    .set({ state: 'expired', body: null, kept_bytes: 0 })
    .where('job_id', 'in', jobIds)
    .where('state', '=', 'kept')
    .execute();
  await giveBytes(tx, rows);
}
