/** The same program as another version, with a migration of its own where it has one. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freshBundle } from '../../src/apps/start/bundle.ts';
import { dataDirectory } from './staged.ts';

const root = join(import.meta.dirname, '../..');

/** A migration that no version of the platform has. */
export const laterMigration = '9999-later';

const migration = `import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql\`create table later (name text not null)\`.execute(db);
}
`;

export interface OtherVersion {
  /** What starts it. */
  readonly main: string;
  /** Its command line. */
  readonly cli: string;
}

/** Makes a copy of the program, which ends with the tests. */
export async function otherVersion(
  version: string,
  { isMigrating = false }: { isMigrating?: boolean } = {},
): Promise<OtherVersion> {
  const directory = join(dataDirectory(), 'program');
  mkdirSync(directory);
  cpSync(join(root, 'src'), join(directory, 'src'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ ...manifest, version }));
  if (isMigrating) {
    const migrations = join(directory, 'src/adapters/database/migrations');
    writeFileSync(join(migrations, `${laterMigration}.ts`), migration);
    // It runs its sources: our bundle has no such migration.
  } else await shareBundle(directory);
  return {
    main: join(directory, 'src/start.js'),
    cli: join(directory, 'src/apps/cli/main.ts'),
  };
}

/** Its starts use our bundle, which reads the version at each start. */
async function shareBundle(directory: string): Promise<void> {
  const ours = freshBundle();
  if (ours === null) throw new Error('The bundle of the tests is missing.');
  const start = pathToFileURL(join(directory, 'src/apps/start/bundle.ts')).href;
  const { bundles, recordFile, recordSources }: typeof import('../../src/apps/start/bundle.ts') =
    await import(start);
  const sources = recordSources();
  cpSync(dirname(ours), join(bundles, sources.fingerprint), { recursive: true });
  writeFileSync(recordFile, JSON.stringify(sources));
}
