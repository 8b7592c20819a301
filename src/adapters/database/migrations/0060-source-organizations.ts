/**
 * The organizations that skills of services outside belong to. Sources of earlier versions belong to all, until an
 * administrator names organizations. Where one organization alone has an account at a source, what the source has shown
 * was shown to that account, and belongs to that organization.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of ['skills', 'remote_sources', 'remote_skill_versions']) {
    await db.schema.alterTable(table).addColumn('organizations', 'text').execute();
  }
  const accounts = sql`from remote_accounts where source_id = remote_skill_versions.source_id`;
  await sql`update remote_skill_versions
    set organizations = (select '["' || min(organization_id) || '"]' ${accounts})
    where (select count(*) ${accounts}) = 1`.execute(db);
  await sql`update skills
    set organizations = (select organizations from remote_skill_versions as one
      where one.source_id = skills.remote_source_id and one.skill_name = skills.skill_name
        and one.version = skills.version)
    where remote_source_id is not null`.execute(db);
}
