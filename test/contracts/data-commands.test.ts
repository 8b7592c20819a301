/** `skillwright backup` and `migrate-to-cluster` for scripts; test/faults runs them as operators do. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DirectoryBlobs } from '../../src/adapters/blobs/directory-blobs.ts';
import { openSqlite } from '../../src/adapters/database/sqlite.ts';
import { Files } from '../../src/core/files/files.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { cli } from '../support/cli.ts';
import { contextOf } from '../support/context.ts';
import { startS3 } from '../support/s3-server.ts';
import {
  dropDatabase,
  isInstalled,
  migratedDatabase,
  migrateSqlite,
} from '../support/shared-servers.ts';

/** A data directory after a first start. */
async function installation(): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'skillwright-data-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  await migrateSqlite(dataDir);
  writeFileSync(join(dataDir, 'admin-secret'), 'a-secret-of-the-tests', { mode: 0o600 });
  return dataDir;
}

test('backup --json prints the file, its size and what is not in it', async () => {
  const dataDir = await installation();
  const file = join(dataDir, 'monday.db');
  const { code, stdout, stderr } = await cli(['backup', file, '--json'], {
    env: { DATA_DIR: dataDir },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    ...{ file, bytes: statSync(file).size, seconds: expect.any(Number) },
    files: { directory: `${file}.files`, copied: 0 },
    not_in_it: [join(dataDir, 'admin-secret')],
  });
});

/** Keeps a file in an installation that does not run, as a platform does. */
async function withFile(dataDir: string, text: string): Promise<string> {
  const database = await openSqlite(dataDir, createLogger('silent'));
  const files = new Files(contextOf({ database }), new DirectoryBlobs(dataDir, true));
  await database.write((tx) => tx.insert('organizations', [{ id: 'acme', created_at: 0 }]));
  const owner = { organizationId: 'acme', userId: null, jobId: null };
  const { blob_key } = await files.create(owner, 'a.txt', Readable.from([Buffer.from(text)]));
  await database.close();
  return blob_key;
}

test('a backup has the bytes of files beside it', async () => {
  const dataDir = await installation();
  const key = await withFile(dataDir, 'of the harbour');
  const file = join(dataDir, 'monday.db');

  const { code, stdout } = await cli(['backup', file], { env: { DATA_DIR: dataDir } });

  expect(code).toBe(0);
  expect(stdout).toContain(`Copied the bytes of 1 files into ${file}.files`);
  expect(readFileSync(join(`${file}.files`, key), 'utf8')).toBe('of the harbour');
});

describe.skipIf(!(await isInstalled('PostgreSQL')))('migrate-to-cluster --json', () => {
  test('prints what was moved as one value, and the files of secrets, not the secrets', async () => {
    const dataDir = await installation();
    const url = await migratedDatabase();
    onTestFinished(() => dropDatabase(url));
    const env = { DATA_DIR: dataDir, DATABASE_URL: url };

    const ended = await cli(['migrate-to-cluster', '--json'], { env });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const moved = JSON.parse(ended.stdout);
    expect(moved).toMatchObject({ from: dataDir, was_there: false, encryption_key_file: null });
    expect(moved.admin_secret_file).toBe(join(dataDir, 'admin-secret'));
    expect(moved.tables).toContainEqual({ name: 'organizations', rows: expect.any(Number) });
    expect(ended.stdout).not.toContain('a-secret-of-the-tests');
  });

  test('moves the bytes of files into the storage that a cluster shares', async () => {
    const dataDir = await installation();
    const key = await withFile(dataDir, 'of the harbour');
    const [url, storage] = [await migratedDatabase(), await startS3()];
    onTestFinished(() => dropDatabase(url));
    onTestFinished(() => storage.close());
    const env = { DATA_DIR: dataDir, DATABASE_URL: url };

    const ended = await cli(['migrate-to-cluster'], { env: { ...env, ...storage.environment } });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain('Moved the bytes of 1 files');
    expect(storage.objects.get(key)?.toString()).toBe('of the harbour');
  });

  test('leaves out the bytes of files that are elsewhere, and moves none a second time', async () => {
    const dataDir = await installation();
    const key = await withFile(dataDir, 'of the harbour');
    rmSync(join(dataDir, 'files', key));
    const [url, storage] = [await migratedDatabase(), await startS3()];
    onTestFinished(() => dropDatabase(url));
    onTestFinished(() => storage.close());
    const env = { DATA_DIR: dataDir, DATABASE_URL: url, ...storage.environment };

    const ended = await cli(['migrate-to-cluster'], { env });
    mkdirSync(dirname(join(dataDir, 'files', key)), { recursive: true });
    writeFileSync(join(dataDir, 'files', key), 'of the harbour');
    const again = await cli(['migrate-to-cluster'], { env });

    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain(`The bytes of 1 files are not in ${join(dataDir, 'files')}`);
    expect(again.stderr).toContain('already');
    expect(storage.objects.size).toBe(0);
  });

  test('says where the bytes of files are that it could not move', async () => {
    const dataDir = await installation();
    await withFile(dataDir, 'of the harbour');
    const url = await migratedDatabase();
    onTestFinished(() => dropDatabase(url));

    const ended = await cli(['migrate-to-cluster'], {
      env: { DATA_DIR: dataDir, DATABASE_URL: url },
    });

    expect(ended.stdout).toContain(`The bytes of 1 files were left in ${join(dataDir, 'files')}`);
  });
});
