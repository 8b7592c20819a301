/** Every query on skills. */
import type { Selectable, Updateable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { SkillsTable } from '../../adapters/database/tables.ts';

export type SkillRow = Selectable<SkillsTable>;

export function listSkillRows(db: Handle): Promise<SkillRow[]> {
  return db.kysely.selectFrom('skills').selectAll().execute();
}

export function listCategoryRows(db: Handle, category: string): Promise<SkillRow[]> {
  return db.kysely.selectFrom('skills').selectAll().where('category', '=', category).execute();
}

const state = statement<Record<never, never>>()((db) =>
  db.selectFrom('skills').select((eb) => [
    eb.fn.countAll<number>().as('n'),
    // A sum and not the latest time, because the clocks of processes differ by milliseconds.
    eb.fn.sum<number | null>('updated_at').as('changes'),
    eb.fn.sum<number | null>('defined').as('defined'),
    eb.fn.sum<number | null>('deprecated').as('deprecated'),
  ]),
);

/** A text that differs after every change of a skill. */
export async function stateOfSkills(db: Handle): Promise<string> {
  return JSON.stringify(await db.first(state, {}));
}

/** Inserts a skill version; does nothing when another process has inserted the same tuple. */
export async function insertSkill(tx: Transaction, row: SkillRow): Promise<void> {
  await tx.kysely
    .insertInto('skills')
    .values(row)
    .onConflict((conflict) => conflict.columns(['category', 'skill_name', 'version']).doNothing())
    .execute();
}

export async function updateSkill(
  tx: Transaction,
  id: string,
  changes: Updateable<SkillsTable>,
): Promise<void> {
  await tx.kysely.updateTable('skills').set(changes).where('id', '=', id).execute();
}
