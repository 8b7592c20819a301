/** `skillwright backup` and `migrate-to-cluster` for scripts; test/faults runs them as operators do. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { cli } from '../support/cli.ts';
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
    not_in_it: [join(dataDir, 'admin-secret')],
  });
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
});
