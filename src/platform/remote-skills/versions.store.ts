/** Every query on the versions of remote skills. */
import type { Selectable, Updateable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { RemoteSkillVersionsTable } from '../../adapters/database/tables.ts';

export type VersionRow = Selectable<RemoteSkillVersionsTable>;

/** All versions of the skills of a source, by skill; the oldest version first. */
export function listVersions(db: Handle, sourceId: string): Promise<VersionRow[]> {
  return db.kysely
    .selectFrom('remote_skill_versions')
    .selectAll()
    .where('source_id', '=', sourceId)
    .orderBy('skill_name')
    .orderBy('created_at')
    .orderBy('version')
    .execute();
}

export function findVersion(
  db: Handle,
  sourceId: string,
  skillName: string,
  version: string,
): Promise<VersionRow | undefined> {
  return db.kysely
    .selectFrom('remote_skill_versions')
    .selectAll()
    .where('source_id', '=', sourceId)
    .where('skill_name', '=', skillName)
    .where('version', '=', version)
    .executeTakeFirst();
}

export async function insertVersions(tx: Transaction, rows: readonly VersionRow[]): Promise<void> {
  for (let i = 0; i < rows.length; i += rowsMax) {
    await tx.kysely
      .insertInto('remote_skill_versions')
      .values(rows.slice(i, i + rowsMax))
      .execute();
  }
}

/** Rows of one statement. */
const rowsMax = 50;

export async function updateVersion(
  tx: Transaction,
  { source_id, skill_name, version }: VersionKey,
  changes: Updateable<RemoteSkillVersionsTable>,
): Promise<void> {
  await tx.kysely
    .updateTable('remote_skill_versions')
    .set(changes)
    .where('source_id', '=', source_id)
    .where('skill_name', '=', skill_name)
    .where('version', '=', version)
    .execute();
}

type VersionKey = Pick<VersionRow, 'source_id' | 'skill_name' | 'version'>;

export async function deleteVersion(
  tx: Transaction,
  { source_id, skill_name, version }: VersionKey,
): Promise<void> {
  await tx.kysely
    .deleteFrom('remote_skill_versions')
    .where('source_id', '=', source_id)
    .where('skill_name', '=', skill_name)
    .where('version', '=', version)
    .execute();
}

export async function deleteVersions(tx: Transaction, sourceId: string): Promise<void> {
  await tx.kysely.deleteFrom('remote_skill_versions').where('source_id', '=', sourceId).execute();
}

/** How many versions of each state the sources have. */
export async function countVersions(
  db: Handle,
  sourceIds: readonly string[],
): Promise<{ source_id: string; state: VersionRow['state']; n: number }[]> {
  if (sourceIds.length === 0) return [];
  const rows = await db.kysely
    .selectFrom('remote_skill_versions')
    .where('source_id', 'in', [...sourceIds])
    .groupBy(['source_id', 'state'])
    .select((eb) => ['source_id', 'state', eb.fn.countAll<number>().as('n')])
    .execute();
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}
