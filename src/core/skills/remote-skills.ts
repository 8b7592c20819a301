/** The rows of skills that a service outside runs. */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { newId } from '../../kernel/ids.ts';
import type { SkillFacts } from './fields.ts';
import { definedColumns, isStored } from './skill-rows.ts';
import { insertSkill, listCategoryRows, updateSkill } from './skills.store.ts';

/** A service outside, and the category that is its own. */
export interface RemoteOwner {
  readonly id: string;
  readonly category: string;
}

/** A skill of a service, and the organizations that it belongs to; null for all. */
export interface RemoteSkillFacts {
  readonly facts: SkillFacts;
  readonly organizations: readonly string[] | null;
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
  skills: readonly RemoteSkillFacts[],
): Promise<void> {
  const now = clock.now();
  const stored = await listCategoryRows(tx, owner.category);
  const rows = new Map(stored.map((row) => [`${row.version}/${row.skill_name}`, row]));
  for (const { facts, organizations } of skills) {
    const key = `${facts.version}/${facts.name}`;
    const row = rows.get(key);
    rows.delete(key);
    const outside = { sourceId: owner.id, organizations };
    if (isStored(row, facts, outside)) continue;
    // Later than before in any case, so that other processes notice the change (`stateOfSkills`).
    const updated_at = Math.max(now, (row?.updated_at ?? 0) + 1);
    const columns = { ...definedColumns(facts, outside), updated_at };
    if (row !== undefined) await updateSkill(tx, row.id, columns);
    else await insertSkill(tx, { id: newId(), ...columns, deprecated: 0, created_at: now });
  }
  for (const { id, defined, remote_source_id } of rows.values()) {
    if (defined === 1 && remote_source_id !== null) {
      await updateSkill(tx, id, { defined: 0, updated_at: now });
    }
  }
}
