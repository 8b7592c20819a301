/** Every query on the owners of memories, and on how many memories they have. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { firstRow, statement } from '../database/statement.ts';

/** Undefined for an agent that never had a memory. */
export const findOwner = firstRow<{ organizationId: string; agentId: string }>()((db, p) =>
  db
    .selectFrom('memory_owners')
    .select(['id', 'count'])
    .where('organization_id', '=', p('organizationId'))
    .where('agent_id', '=', p('agentId'))
    // As a literal, so that the index of those that are not removed serves.
    .where('removed', '=', sql.lit(0)),
);

/** Adds the owner of an agent's memories; its number. */
export async function insertOwner(tx: Transaction, organizationId: string, agentId: string) {
  const { id } = await tx.kysely
    .insertInto('memory_owners')
    .values({ organization_id: organizationId, agent_id: agentId })
    .returning('id')
    .executeTakeFirstOrThrow();
  return Number(id);
}

/** From now on no query finds these memories. */
export async function markRemoved(tx: Transaction, organizationId: string, agentId: string) {
  await tx.kysely
    .updateTable('memory_owners')
    .set({ removed: 1 })
    .where('organization_id', '=', organizationId)
    .where('agent_id', '=', agentId)
    .where('removed', '=', 0)
    .execute();
}

export const findRemovedOwner = firstRow<object>()((db) =>
  db.selectFrom('memory_owners').select('id').where('removed', '=', sql.lit(1)).limit(1),
);

/** Deletes up to `max` counts of an owner without memories, or else the owner. */
export async function deleteEmptyOwner(tx: Transaction, owner: number, max: number): Promise<void> {
  const tags = await tx.kysely
    .selectFrom('memory_tags')
    .select(['owner', 'tag'])
    .where('owner', '=', owner)
    .limit(max)
    .execute();
  await tx.each(deleteTag, tags);
  if (tags.length > 0) return;
  await tx.kysely.deleteFrom('memory_owners').where('id', '=', owner).execute();
}

const deleteTag = statement<{ owner: number; tag: string }>()((db, p) =>
  db.deleteFrom('memory_tags').where('owner', '=', p('owner')).where('tag', '=', p('tag')),
);

/** How many memories have a tag. */
export async function countOfTag(db: Handle, owner: number, tag: string): Promise<number> {
  const row = await db.kysely
    .selectFrom('memory_tags')
    .select('count')
    .where('owner', '=', owner)
    .where('tag', '=', tag)
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

const addToOwner = statement<{ owner: number; by: number }>()((db, p) =>
  db
    .updateTable('memory_owners')
    .set((eb) => ({ count: eb('count', '+', p('by')) }))
    .where('id', '=', p('owner')),
);
const addToTag = statement<{ owner: number; tag: string; by: number }>()((db, p) =>
  db
    .insertInto('memory_tags')
    .values({ owner: p('owner'), tag: p('tag'), count: p('by') })
    .onConflict((conflict) =>
      conflict
        .columns(['owner', 'tag'])
        .doUpdateSet((eb) => ({ count: eb('memory_tags.count', '+', eb.ref('excluded.count')) })),
    ),
);
const deleteUnusedTag = statement<{ owner: number; tag: string }>()((db, p) =>
  db
    .deleteFrom('memory_tags')
    .where('owner', '=', p('owner'))
    .where('tag', '=', p('tag'))
    .where('count', '=', sql.lit(0)),
);

/** Adds to the counts of an owner: by tag, how many more memories there are. */
export async function addToCounts(
  tx: Transaction,
  owner: number,
  changes: ReadonlyMap<string, number>,
): Promise<void> {
  const tags = [...changes].map(([tag, by]) => ({ owner, tag, by })).filter(({ by }) => by !== 0);
  if (tags.length === 0) return;
  const by = tags.reduce((sum, one) => sum + one.by, 0);
  await tx.each(addToOwner, [{ owner, by }]);
  await tx.each(addToTag, tags);
  const lessened = tags.filter((one) => one.by < 0);
  await tx.each(deleteUnusedTag, lessened);
}
