/** Lowers the limits of triggers to what their keys allow: 60 calls a minute, or the key's own limit where that is larger. */
import { type Kysely, sql } from 'kysely';

const ofKey = sql`(select api_keys.rate_limit from api_keys where api_keys.id = agent_triggers.api_key_id)`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`update agent_triggers set rate_limit = case when ${ofKey} > 60 then ${ofKey} else 60 end
    where rate_limit > 60 and rate_limit > ${ofKey}`.execute(db);
}
