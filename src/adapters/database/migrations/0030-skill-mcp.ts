/** How each skill appears to clients of the Model Context Protocol: a JSON object, null for the defaults. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('skills').addColumn('mcp', 'text').execute();
}
