/** Brings a database's schema to this program's; refuses one that is newer than the program. */
import { readdirSync } from 'node:fs';
import { parse } from 'node:path';
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { Logger } from '../../kernel/log.ts';
import type { Dialect } from './database.ts';
import type { Tables } from './tables.ts';

/** The names of the migrations, in order; one that has been released is never changed. */
export const knownMigrations = readdirSync(new URL('./migrations/', import.meta.url))
  .filter((file) => /^\d{4}-[\w-]+\.[jt]s$/.test(file))
  .map((file) => parse(file).name)
  .sort();

interface MigrationModule {
  up(db: Kysely<unknown>, dialect: Dialect): Promise<void>;
}

/** Gives work that may take long a way to the database on which it may. */
export type Patiently = <T>(work: (kysely: Kysely<Tables>) => Promise<T>) => Promise<T>;

/**
 * Runs the missing migrations, and logs how many before it begins: a large database can take minutes, in which the
 * platform does not answer. Throws an error for the operator when the schema is of a newer version.
 */
export async function migrate(
  kysely: Kysely<Tables>,
  dialect: Dialect,
  log: Logger,
  patiently: Patiently = (work) => work(kysely),
): Promise<void> {
  const applied = await adoptSchema(kysely, await appliedMigrations(kysely, dialect));
  const unknown = applied.find((name) => !knownMigrations.includes(name));
  if (unknown !== undefined) {
    throw new Error(
      `The database was last used by a newer Skillwright (it has migration ${unknown}): run that version, or restore a backup from before the upgrade.`,
    );
  }
  const missing = knownMigrations.filter((name) => !applied.includes(name));
  if (missing.length === 0) return;
  // The first start makes the schema; there is nothing to upgrade then.
  const level = applied.length === 0 ? 'debug' : 'info';
  const range = { migrations: missing.length, first: missing[0], last: missing.at(-1) };
  log[level](range, 'upgrading the schema of the database');
  const begun = performance.now();
  // Loaded only where one is missing: most starts need none of them.
  const { Migrator } = await import('kysely/migration');
  const provider = { getMigrations: () => loadMigrations(dialect) };
  const { error } = await patiently((db) => new Migrator({ db, provider }).migrateToLatest());
  if (error !== undefined) throw error;
  const duration_ms = Math.round(performance.now() - begun);
  log[level]({ ...range, duration_ms }, 'upgraded the schema of the database');
}

/** All migrations, by name. */
export async function loadMigrations(dialect: Dialect): Promise<Record<string, Migration>> {
  const loaded = knownMigrations.map(async (name) => {
    const { up } = (await import(`./migrations/${name}.ts`)) as MigrationModule;
    return [name, { up: (db: Kysely<unknown>) => up(db, dialect) }] as const;
  });
  return Object.fromEntries(await Promise.all(loaded));
}

/** The last of the migrations before the first version, of which `0001-schema` is the sum. */
const lastUnreleased = '0071-keys-of-jobs';
const schemaName = '0001-schema';

/** The migrations of a database by the names of this program, where it is from before the first version. */
export function adopted(applied: string[]): string[] {
  return applied.includes(lastUnreleased) ? [schemaName] : applied;
}

/** Names the schema of an installation from before the first version as the first version does; the rows stay. */
async function adoptSchema(kysely: Kysely<Tables>, applied: string[]): Promise<string[]> {
  if (!applied.includes(lastUnreleased)) return applied;
  // In this order, so that an interrupted adoption is repeated; another process may adopt at the same time.
  const db = migrationsOf(kysely);
  const kept = [...knownMigrations, lastUnreleased];
  await db.deleteFrom('kysely_migration').where('name', 'not in', kept).execute();
  const last = db.updateTable('kysely_migration').where('name', '=', lastUnreleased);
  await last.set({ name: schemaName }).execute();
  return adopted(applied);
}

/** A start asks as little of the database as it can: whether one table is there. */
const hasMigrations = {
  sqlite: sql`select 1 from sqlite_master where name = 'kysely_migration'`,
  postgres: sql`select 1 where to_regclass('kysely_migration') is not null`,
};

async function appliedMigrations(kysely: Kysely<Tables>, dialect: Dialect): Promise<string[]> {
  const { rows: found } = await hasMigrations[dialect].execute(kysely);
  if (found.length === 0) return [];
  const rows = await migrationsOf(kysely).selectFrom('kysely_migration').select('name').execute();
  return rows.map((row) => row.name);
}

function migrationsOf(kysely: Kysely<Tables>) {
  return kysely as unknown as Kysely<{ kysely_migration: { name: string } }>;
}
