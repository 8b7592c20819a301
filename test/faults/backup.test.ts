/**
 * Backup and restore as docs/backup.md says, of both databases: made while the platform accepts,
 * restored elsewhere after it is gone. Whatever was accepted before the backup began is there and
 * goes on to its end.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { openSqlite, sqliteFile } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { cli } from '../support/cli.ts';
import { expectConsistent } from '../support/consistency.ts';
import { findPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type PlatformProcess, spawnCommand, startProcess } from '../support/process.ts';
import { isInstalled } from '../support/shared-servers.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';
import {
  receiverAuthorityFile,
  startTlsReceiver,
  type TlsReceiver,
} from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';

const clients = 6;
const acceptedBefore = 100;
const acceptedAfter = 50;
const log = createLogger('silent');
const vault = 'staged/v1.0/vault';

let directory: string;
let receiver: TlsReceiver;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'skillwright-backup-'));
  receiver = await startTlsReceiver();
});
afterEach(async () => {
  await receiver.close();
  rmSync(directory, { recursive: true, force: true });
});

const environment = (more: Record<string, string> = {}) => ({
  EXECUTORS: '1',
  SKILLS_DIR: join(import.meta.dirname, '../fixtures/skills/staged'),
  RETRY_BACKOFF_MS: '10',
  JOB_LEASE_MS: '2000',
  WORKER_CONCURRENCY: '20',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  WEBHOOK_RETRY_DELAYS: '1,1,1',
  NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
  ...more,
});

/** Posts until the platform is gone: what was accepted, and when that was known. */
async function load(platform: PlatformProcess, key: string, accepted: Map<string, number>) {
  for (let i = 0; ; i++) {
    const run = i % 4 === 0 ? ['wait', { ms: 300 }] : ['echo', { text: `job ${accepted.size}` }];
    try {
      const answer = await platform.request('POST', `/api/util/v1.0/${run[0]}`, {
        key,
        body: run[1],
      });
      if (answer.status === 202) accepted.set(answer.body.job_id, performance.now());
    } catch {
      return;
    }
  }
}

/** A platform under load until `backUp` is done and for a while longer, then killed. */
async function backedUp(platform: PlatformProcess, backUp: () => Promise<void>) {
  const key = await platform.key();
  const events = ['skill.completed', 'skill.failed', 'conversation.created'];
  const hook = { agent_id: 'default', url: `${receiver.origin}/hook`, events };
  const webhook = await platform.request('POST', '/api/agent-webhooks', { key, body: hook });
  expect(webhook.status).toBe(201);
  const { body: skill } = await platform.request('GET', `/api/skills/${vault}`, { key });
  const secret = { key, body: { SECRET: 'of-the-organization' } };
  expect((await platform.request('PUT', `/api/skills/${skill.id}/config`, secret)).status).toBe(
    200,
  );
  const accepted = new Map<string, number>();
  const loads = Array.from({ length: clients }, () => load(platform, key, accepted));
  const reaches = (n: number) =>
    waitFor(() => accepted.size >= n, { describe: `${n} jobs are accepted`, deadlineMs: 60_000 });

  await reaches(acceptedBefore);
  const begun = performance.now();
  await backUp();
  await reaches(accepted.size + acceptedAfter);
  platform.signal('SIGKILL');
  await platform.exit;
  await Promise.all(loads);

  const before = [...accepted].filter(([, at]) => at < begun).map(([id]) => id);
  return { key, before, all: [...accepted.keys()] };
}

/** What has to hold of a platform on what was restored; `open` opens its database once it has stopped. */
async function expectRestored(
  platform: PlatformProcess,
  { key, before, all }: Awaited<ReturnType<typeof backedUp>>,
  open: () => Promise<Database>,
): Promise<void> {
  const totalOf = async (status: string) =>
    (await platform.request('GET', `/api/jobs?status=${status}`, { key })).body.total as number;
  await waitFor(async () => (await totalOf('queued')) + (await totalOf('active')) === 0, {
    describe: 'every job has ended',
    deadlineMs: 60_000,
    everyMs: 100,
  });
  const fresh = await platform.run(key, 'util/v1.0/echo', { text: 'after the restore' });
  expect(fresh.body.status).toBe('completed');
  await receiver.receivedWhere(({ json }) => json.data.job_id === fresh.body.job_id);
  const opened = await platform.run(key, vault, {});
  expect(opened.body.output).toBe('of-the-organization'.length);
  await platform.stop();

  const database = await open();
  try {
    const jobs = await database.read.kysely.selectFrom('jobs').select(['id', 'status']).execute();
    const there = new Set(jobs.map(({ id }) => id));
    expect(before.filter((id) => !there.has(id))).toEqual([]);
    const known = new Set([...all, fresh.body.job_id, opened.body.job_id]);
    expect(jobs.filter(({ id, status }) => !known.has(id) || status !== 'completed')).toEqual([]);
    await expectConsistent(database);
  } finally {
    await database.close();
  }
}

describe('an embedded platform', () => {
  test('that is backed up under load is restored with all that it had accepted', async () => {
    const dataDir = join(directory, 'data');
    const file = join(directory, 'copy.db');
    const platform = await startProcess(dataDir, environment());
    const done = await backedUp(platform, async () => {
      const { exit, output } = spawnCommand('backup', { DATA_DIR: dataDir }, [file]);
      expect(await exit, output()).toEqual({ code: 0, signal: null });
      expect(output()).toMatch(/Made and checked .*copy\.db: [\d.]+ MB/);
      expect(output()).toContain(join(dataDir, 'encryption-key'));
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);

    const restored = join(directory, 'restored');
    mkdirSync(restored);
    copyFileSync(file, sqliteFile(restored));
    copyFileSync(join(dataDir, 'encryption-key'), join(restored, 'encryption-key'));
    const again = await startProcess(restored, environment());

    await expectRestored(again, done, () => openSqlite(restored, createLogger('silent')));
  });

  test('is backed up when it is not running too, however it ended', async () => {
    const dataDir = join(directory, 'data');
    const platform = await startProcess(dataDir, environment());
    const key = await platform.key();
    const { body } = await platform.run(key, 'util/v1.0/echo', { text: 'x' });
    platform.signal('SIGKILL');
    await platform.exit;

    const restored = join(directory, 'restored');
    mkdirSync(restored);
    const { exit, output } = spawnCommand('backup', { DATA_DIR: dataDir }, [sqliteFile(restored)]);
    expect(await exit, output()).toEqual({ code: 0, signal: null });

    const again = await startProcess(restored, environment());
    const found = await again.request('GET', `/api/jobs/${body.job_id}`, { key });
    await again.stop();
    expect(found.body).toEqual(body);
  });

  test.each<[string, Record<string, string>, string[], RegExp]>([
    ['without a name', {}, [], /Give the name of the file/],
    ['onto a file that is there', {}, ['data/skillwright.db'], /is there already/],
    ['where there is no database', { DATA_DIR: 'none' }, ['copy.db'], /no embedded database/],
    [
      'into a folder that is not there',
      {},
      ['none/copy.db'],
      /^\S+none\/copy\.db cannot be made: /,
    ],
    ['of PostgreSQL', { DATABASE_URL: 'postgres://x' }, ['copy.db'], /use pg_dump/],
  ])('no copy is made %s', async (_what, more, [file], sentence) => {
    const dataDir = join(directory, 'data');
    await (await openSqlite(dataDir, createLogger('silent'))).close();
    const { DATA_DIR, ...others } = more;
    const env = { DATA_DIR: join(directory, DATA_DIR ?? 'data'), ...others };
    const args = file === undefined ? [] : [join(directory, file)];
    const { code, stdout, stderr } = await cli(['backup', ...args], { env });

    expect([code, stdout]).toEqual([file === undefined ? 2 : 1, '']);
    expect(stderr.trim().split('\n')).toEqual([expect.stringMatching(sentence)]);
  });

  test.skipIf(!canMount())('no copy is made onto a disk without room for it', async () => {
    const dataDir = join(directory, 'data');
    await (await openSqlite(dataDir, createLogger('silent'))).close();
    const disk = mountSmallDisk(1);
    onTestFinished(() => disk.close());
    const file = join(disk.path, 'copy.db');
    disk.fill();

    const { code, stdout, stderr } = await cli(['backup', file], { env: { DATA_DIR: dataDir } });

    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/^\S+copy\.db cannot be made: .*full/),
    ]);
    expect(readdirSync(disk.path)).toEqual(['ballast']);
  });
});

describe.skipIf(!(await isInstalled('PostgreSQL')))('a platform on PostgreSQL', () => {
  test('that is dumped under load is restored into another server with all that it had accepted', async () => {
    const [old, young] = [await startPostgres({ isMigrated: true }), await startPostgres()];
    try {
      await useUpTransactions(old);
      const [source, target] = [old.migratedUrl, await young.createDatabase()];
      const file = join(directory, 'skillwright.dump');
      const encryptionKey = { ENCRYPTION_KEY: 'ab'.repeat(32) };
      const platform = await startProcess(
        join(directory, 'data'),
        environment({ ...encryptionKey, DATABASE_URL: source }),
      );
      const done = await backedUp(platform, async () => {
        await run('pg_dump', '--format=custom', `--file=${file}`, source);
      });

      await run(
        'pg_restore',
        ...['--exit-on-error', '--single-transaction', '--no-owner', `--dbname=${target}`],
        file,
      );
      const again = await startProcess(
        join(directory, 'data'),
        environment({ ...encryptionKey, DATABASE_URL: target }),
      );

      await expectRestored(again, done, () => openPostgres(target, log));
    } finally {
      await old.close();
      await young.close();
    }
  });
});

async function run(program: string, ...args: string[]): Promise<void> {
  await promisify(execFile)(join(findPostgres() ?? '', program), args);
}

/** Makes a server look as if it had worked for a while: its transactions have high numbers. */
async function useUpTransactions(server: PostgresServer): Promise<void> {
  const client = new pg.Client({ connectionString: server.url() });
  await client.connect();
  await client.query(`do $$ begin
    for i in 1..20000 loop perform pg_current_xact_id(); commit; end loop;
  end $$`);
  await client.end();
}
