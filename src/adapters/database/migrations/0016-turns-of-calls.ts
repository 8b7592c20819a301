/** Orders the calls that wait at a gate by organization, so that these have their turns one after the other. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    'drop index places_of_gate',
    'create index places_of_gate on places (gate, is_held, organization_id, since)',
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
