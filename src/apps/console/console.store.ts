/** The queries on the secret and the ended sessions of the console. */
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';

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

/** Records that a session was ended; again has no further effect. */
export async function insertEndedSession(
  tx: Transaction,
  row: { id: string; expires_at: number },
): Promise<void> {
  await tx.kysely
    .insertInto('ended_sessions')
    .values(row)
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute();
}

export async function isEndedSession({ kysely }: Handle, id: string): Promise<boolean> {
  const row = await kysely
    .selectFrom('ended_sessions')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes the records of sessions that have expired at `now`, at most `max`; how many. */
export async function deleteExpiredSessions(
  { kysely }: Transaction,
  now: number,
  max: number,
): Promise<number> {
  const { numDeletedRows } = await kysely
    .deleteFrom('ended_sessions')
    .where('id', 'in', (expired) =>
      expired.selectFrom('ended_sessions').select('id').where('expires_at', '<=', now).limit(max),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows);
}
