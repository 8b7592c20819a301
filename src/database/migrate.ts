/** Brings a database's schema to this program's; refuses one that is newer than the program. */
import type { Kysely } from 'kysely';
import { Migrator } from 'kysely/migration';
import type { Dialect } from './database.ts';
import { up as foundation } from './migrations/0001-foundation.ts';
import { up as idempotencyOwners } from './migrations/0002-idempotency-owners.ts';
import { up as schedules } from './migrations/0003-schedules.ts';
import { up as memories } from './migrations/0004-memories.ts';
import { up as webhooks } from './migrations/0005-webhooks.ts';
import { up as triggers } from './migrations/0006-triggers.ts';
import { up as thinking } from './migrations/0007-thinking.ts';
import { up as cluster } from './migrations/0008-cluster.ts';
import { up as lists } from './migrations/0009-lists.ts';
import { up as roomForUpdates } from './migrations/0010-room-for-updates.ts';
import { up as statistics } from './migrations/0011-statistics.ts';
import { up as triggerCalls } from './migrations/0012-trigger-calls.ts';
import { up as deliverySubjects } from './migrations/0013-delivery-subjects.ts';
import { up as skillExamples } from './migrations/0014-skill-examples.ts';
import { up as console } from './migrations/0015-console.ts';
import { up as triggerOfJob } from './migrations/0016-trigger-of-job.ts';
import { up as sealedSecrets } from './migrations/0017-sealed-secrets.ts';
import { up as tokenIndex } from './migrations/0018-token-index.ts';
import { up as stepResults } from './migrations/0019-step-results.ts';
import { up as backlogs } from './migrations/0020-backlogs.ts';
import { up as stepParents } from './migrations/0021-step-parents.ts';
import { up as lastJobs } from './migrations/0022-last-jobs.ts';
import { up as processCapabilities } from './migrations/0023-process-capabilities.ts';
import { up as skillFields } from './migrations/0024-skill-fields.ts';
import type { Tables } from './tables.ts';

/** In order; a migration that has been released is never changed. */
const migrations: Record<string, (db: Kysely<unknown>, dialect: Dialect) => Promise<void>> = {
  '0001-foundation': foundation,
  '0002-idempotency-owners': idempotencyOwners,
  '0003-schedules': schedules,
  '0004-memories': memories,
  '0005-webhooks': webhooks,
  '0006-triggers': triggers,
  '0007-thinking': thinking,
  '0008-cluster': cluster,
  '0009-lists': lists,
  '0010-room-for-updates': roomForUpdates,
  '0011-statistics': statistics,
  '0012-trigger-calls': triggerCalls,
  '0013-delivery-subjects': deliverySubjects,
  '0014-skill-examples': skillExamples,
  '0015-console': console,
  '0016-trigger-of-job': triggerOfJob,
  '0017-sealed-secrets': sealedSecrets,
  '0018-token-index': tokenIndex,
  '0019-step-results': stepResults,
  '0020-backlogs': backlogs,
  '0021-step-parents': stepParents,
  '0022-last-jobs': lastJobs,
  '0023-process-capabilities': processCapabilities,
  '0024-skill-fields': skillFields,
};

/** Gives work that may take long a way to the database on which it may. */
export type Patiently = <T>(work: (kysely: Kysely<Tables>) => Promise<T>) => Promise<T>;

/** Runs the missing migrations. Throws an error for the operator when the schema is of a newer version. */
export async function migrate(
  kysely: Kysely<Tables>,
  dialect: Dialect,
  patiently: Patiently = (work) => work(kysely),
): Promise<void> {
  const provided = Object.entries(migrations).map(([name, migration]) => [
    name,
    { up: (db: Kysely<unknown>) => migration(db, dialect) },
  ]);
  const provider = { getMigrations: async () => Object.fromEntries(provided) };
  const known = new Set(Object.keys(migrations));
  const applied = await appliedMigrations(kysely);
  const unknown = applied.filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new Error(
      `The database was last used by a newer Skillwright (it has migration ${unknown[0]}): run that version, or restore a backup from before the upgrade.`,
    );
  }
  if (applied.length === known.size) return;
  const { error } = await patiently((db) => new Migrator({ db, provider }).migrateToLatest());
  if (error !== undefined) throw error;
}

async function appliedMigrations(kysely: Kysely<Tables>): Promise<string[]> {
  const tables = await kysely.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === 'kysely_migration')) return [];
  const rows = await (kysely as unknown as Kysely<{ kysely_migration: { name: string } }>)
    .selectFrom('kysely_migration')
    .select('name')
    .execute();
  return rows.map((row) => row.name);
}
