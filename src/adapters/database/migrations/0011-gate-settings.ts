/** Adds the limits and pauses that operators set: those of organizations, agents, keys and skills. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { schemaTypes } from '../schema/dialects.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await sql
    .raw(
      `create table gate_settings (
        name text not null primary key,
        places integer not null,
        updated_at bigint not null
      ) ${schemaTypes[dialect].clustered}`,
    )
    .execute(db);
}
