/**
 * Signing secrets are encrypted. The rows that are there are encrypted after the start, because a
 * migration does not know the key (src/adapters/database/signing-secrets.ts); the indexes find what is left.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table webhooks add column secret_sealed integer not null default 0`.execute(db);
  await sql`alter table agent_triggers add column secret_sealed integer not null default 0`.execute(
    db,
  );
  await sql`create index webhooks_unsealed on webhooks (id) where secret_sealed = 0`.execute(db);
  await sql`create index agent_triggers_unsealed on agent_triggers (id)
    where secret_sealed = 0 and signing_secret is not null`.execute(db);
}
