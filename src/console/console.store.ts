/** The queries on the secret of the console. */
import type { Database } from '../database/database.ts';

const only = 1;

/** The secret with which all processes sign sessions; `fresh` is stored when there is none. */
export async function sessionSecret(database: Database, fresh: string): Promise<string> {
  const find = () =>
    database.read.kysely
      .selectFrom('console_secrets')
      .select('secret')
      .where('id', '=', only)
      .executeTakeFirst();
  const known = await find();
  if (known !== undefined) return known.secret;
  await database.write((tx) =>
    tx.kysely
      .insertInto('console_secrets')
      .values({ id: only, secret: fresh })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .execute(),
  );
  // Another process may have been first.
  return (await find())?.secret ?? fresh;
}
