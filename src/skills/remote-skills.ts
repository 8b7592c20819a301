/** The rows of skills that a service outside runs. */
import type { Handle, Transaction } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { newId } from '../kernel/ids.ts';
import type { SkillFacts } from './fields.ts';
import { definedColumns, isStored } from './skill-rows.ts';
import { insertSkill, listCategoryRows, updateSkill } from './skills.store.ts';

/** A service outside, and the category that is its own. */
export interface RemoteOwner {
  readonly id: string;
  readonly category: string;
}

/** The versions of skills that services outside have had in a category, active or not. */
export async function listRemoteVersions(db: Handle, category: string) {
  const rows = await listCategoryRows(db, category);
  return rows.map(({ skill_name, version }) => ({ skill_name, version }));
}

/**
 * Stores the skills that a service runs now, and marks all others of its category inactive. Call `refresh` of the
 * registry after the commit; other processes learn of it as of any change of a skill.
 */
export async function recordRemoteSkills(
  tx: Transaction,
  clock: Pick<Clock, 'now'>,
  owner: RemoteOwner,
  facts: readonly SkillFacts[],
): Promise<void> {
  const now = clock.now();
  const stored = await listCategoryRows(tx, owner.category);
  const rows = new Map(stored.map((row) => [`${row.version}/${row.skill_name}`, row]));
  for (const one of facts) {
    const key = `${one.version}/${one.name}`;
    const row = rows.get(key);
    rows.delete(key);
    if (isStored(row, one, owner.id)) continue;
    const columns = { ...definedColumns(one, owner.id), updated_at: now };
    if (row !== undefined) await updateSkill(tx, row.id, columns);
    else await insertSkill(tx, { id: newId(), ...columns, deprecated: 0, created_at: now });
  }
  for (const { id, defined, remote_source_id } of rows.values()) {
    if (defined === 1 && remote_source_id !== null) {
      await updateSkill(tx, id, { defined: 0, updated_at: now });
    }
  }
}
