/** Every query on organizations' values of the settings that skills declare. */
import type { Selectable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { SkillSettingsTable } from '../../adapters/database/tables.ts';

export type SettingRow = Selectable<SkillSettingsTable>;

/** Whose values: those of an organization for all versions of a skill. */
export interface SettingsOwner {
  readonly organization_id: string;
  readonly category: string;
  readonly skill_name: string;
}

const ofSkill = statement<{ organization_id: string; category: string; skill_name: string }>()(
  (db, p) =>
    db
      .selectFrom('skill_settings')
      .selectAll()
      .where('organization_id', '=', p('organization_id'))
      .where('category', '=', p('category'))
      .where('skill_name', '=', p('skill_name')),
);

export function findSettings(db: Handle, owner: SettingsOwner): Promise<SettingRow[]> {
  const { organization_id, category, skill_name } = owner;
  return db.all(ofSkill, { organization_id, category, skill_name });
}

/** Values of all organizations: the `limit` oldest. */
export function listSettings(db: Handle, limit: number): Promise<SettingRow[]> {
  return db.kysely
    .selectFrom('skill_settings')
    .selectAll()
    .orderBy('created_at')
    .limit(limit)
    .execute();
}

/** Inserts rows, or replaces the values of existing ones. */
export async function replaceSettings(tx: Transaction, rows: SettingRow[]): Promise<void> {
  await tx.kysely
    .insertInto('skill_settings')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'category', 'skill_name', 'name']).doUpdateSet((eb) => ({
        value: eb.ref('excluded.value'),
        secret: eb.ref('excluded.secret'),
        updated_at: eb.ref('excluded.updated_at'),
      })),
    )
    .execute();
}

/** Deletes the values of these settings, or of all settings of the skill. */
export async function deleteSettings(
  tx: Transaction,
  { organization_id, category, skill_name }: SettingsOwner,
  names?: readonly string[],
): Promise<void> {
  let query = tx.kysely
    .deleteFrom('skill_settings')
    .where('organization_id', '=', organization_id)
    .where('category', '=', category)
    .where('skill_name', '=', skill_name);
  if (names !== undefined) query = query.where('name', 'in', [...names]);
  await query.execute();
}
