/** The one row that the console keeps. */
import type { Database } from '../database/database.ts';

const only = 1;

/** What all processes sign sessions with; `fresh` becomes it where there is none yet. */
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
