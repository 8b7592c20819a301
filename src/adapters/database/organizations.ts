/** The one query on organizations that several slices ask. */
import type { Handle } from './database.ts';

export async function isOrganization(db: Handle, id: string): Promise<boolean> {
  const row = await db.kysely
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row !== undefined;
}
