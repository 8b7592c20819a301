/** Every query on the profiles of users. */
import { type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { firstRow } from '../../adapters/database/statement.ts';
import type { ProfilesTable } from '../../adapters/database/tables.ts';
import { ownerKinds } from './owners.store.ts';

export type ProfileRow = Selectable<ProfilesTable>;

/** The profile of a user; `usersOf` is the agent's name in `memory_owners`. */
export const profileOfUser = firstRow<{
  organizationId: string;
  usersOf: string;
  userId: string;
}>()((db, p) =>
  db
    .selectFrom('memory_owners')
    .innerJoin('profiles', 'profiles.owner', 'memory_owners.id')
    .selectAll('profiles')
    .where('organization_id', '=', p('organizationId'))
    .where('agent_id', '=', p('usersOf'))
    .where('kind', '=', sql.lit(ownerKinds.user))
    .where('user_id', '=', p('userId'))
    .where('removed', '=', sql.lit(0)),
);

/** The profiles of a user, of all agents. */
export function profilesOfUser(db: Handle, organizationId: string, userId: string) {
  return db.kysely
    .selectFrom('memory_owners')
    .innerJoin('profiles', 'profiles.owner', 'memory_owners.id')
    .selectAll('profiles')
    .select('agent_id')
    .where('organization_id', '=', organizationId)
    .where('kind', '=', sql.lit(ownerKinds.user))
    .where('user_id', '=', userId)
    .where('removed', '=', sql.lit(0))
    .orderBy('agent_id')
    .execute();
}

export async function insertProfile(tx: Transaction, row: ProfileRow): Promise<void> {
  await tx.kysely.insertInto('profiles').values(row).execute();
}

export async function updateProfile(
  tx: Transaction,
  { owner, ...columns }: ProfileRow,
): Promise<void> {
  await tx.kysely.updateTable('profiles').set(columns).where('owner', '=', owner).execute();
}
