import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Insertable } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { contextOf } from '../../../../test/support/context.ts';
import { waitFor } from '../../../../test/support/wait-for.ts';
import { DirectoryBlobs } from '../../../adapters/blobs/directory-blobs.ts';
import type { Database } from '../../../adapters/database/database.ts';
import { openInMemory } from '../../../adapters/database/sqlite.ts';
import type { JobStatus, JobsTable } from '../../../adapters/database/tables.ts';
import { createLogger } from '../../../kernel/log.ts';
import { readConfig } from '../../config/config.ts';
import { Files } from '../../files/files.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import { RunFiles } from './run-files.ts';

const job = { id: 'job', organization_id: 'a', user_id: 'b', for_user: 0 } as ClaimedJob;
const newRow = {
  id: job.id,
  organization_id: 'a',
  user_id: 'b',
  api_key_id: 'c',
  agent_id: 'd',
  conversation_id: 'e',
  trigger_type: 'api' as const,
  skill_category: 'test',
  skill_name: 'files',
  skill_version: 'v1.0',
  max_attempts: 1,
  input: '{}',
  run_at: 0,
  created_at: 0,
} as Insertable<JobsTable>;
const page = { limit: 50, offset: 0 };
const { signal } = new AbortController();

let database: Database;
let dataDir: string;
let files: Files;
beforeEach(async () => {
  database = await openInMemory(createLogger('silent'));
  dataDir = mkdtempSync(join(tmpdir(), 'run-files-'));
  const context = contextOf({ database, config: readConfig({}) });
  files = new Files(context, new DirectoryBlobs(dataDir, true));
  await database.write((tx) => tx.insert('jobs', [{ ...newRow, status: 'active' }]));
});
afterEach(() => database.close());

const setStatus = (status: JobStatus) =>
  database.write(async (tx) => {
    await tx.kysely.updateTable('jobs').set({ status }).where('id', '=', job.id).execute();
  });

const arriving = () => readdirSync(join(dataDir, 'files/.arriving'));
const piece = (upload: unknown, isLast = false) => ({
  upload,
  name: 'a',
  base64: Buffer.alloc(1_000, 7).toString('base64'),
  isLast,
});

test('a file of which a run has given a part is none when the run ends', async () => {
  const run = new RunFiles(files, job);
  const stop = new AbortController();
  const upload = await run.ask('file-put', piece(null), stop.signal);
  await run.ask('file-put', piece(upload), stop.signal);
  await waitFor(() => arriving().length === 1, { describe: 'the part arrives' });

  stop.abort();

  await waitFor(() => arriving().length === 0, { describe: 'the part is removed' });
  expect((await files.list('a', {}, page)).total).toBe(0);
  expect(existsSync(join(dataDir, 'files/a'))).toBe(false);
});

test('a file whose bytes are stored after the job has ended is none, and its bytes are removed', async () => {
  await setStatus('cancelled');

  const given = new RunFiles(files, job).ask('file-put', piece(null, true), signal);

  await expect(given).rejects.toMatchObject({ code: 'service_unavailable' });
  expect((await files.list('a', {}, page)).total).toBe(0);
  await files.purge();
  expect(readdirSync(join(dataDir, 'files/a'))).toEqual([]);
});

test('bytes that an earlier file has stay where those of another file are stored too late', async () => {
  const run = new RunFiles(files, job);
  const given = (await run.ask('file-put', piece(null, true), signal)) as { id: string };
  const row = await files.find('a', given.id);
  await setStatus('cancelled');
  // The storage has lost them, so they are stored again.
  rmSync(join(dataDir, 'files', row.blob_key));

  const second = run.ask('file-put', { ...piece(null, true), name: 'b' }, signal);

  await expect(second).rejects.toMatchObject({ code: 'service_unavailable' });
  await files.purge();
  expect(existsSync(join(dataDir, 'files', row.blob_key))).toBe(true);
});

test('a file whose bytes are not its own is not read, and takes no place of others', async () => {
  const run = new RunFiles(files, job);
  const given = (await run.ask('file-put', piece(null, true), signal)) as { id: string };
  const row = await files.find('a', given.id);
  writeFileSync(join(dataDir, 'files', row.blob_key), Buffer.alloc(1_000, 8));

  for (let n = 0; n < 20; n++) {
    await expect(run.ask('file-get', { id: row.id }, signal)).rejects.toMatchObject({
      code: 'upstream_unavailable',
      retryable: true,
    });
  }
});

test('a purge ends where the processes share no storage, whatever is left to remove', async () => {
  const keys = Array.from({ length: 100 }, (_, i) => ({ blob_key: `a/${i}`, due_at: 0 }));
  await database.write((tx) => tx.insert('file_garbage', keys));

  await new Files(contextOf({ database, config: readConfig({}) }), null).purge();
});

test('two runs of a job that give the same bytes by the same name have one file', async () => {
  const give = (name: string) =>
    new RunFiles(files, job).ask('file-put', { ...piece(null, true), name }, signal);

  const [first, second, other] = await Promise.all([give('a'), give('a'), give('b')]);

  expect(second).toEqual(first);
  expect(other).not.toEqual(first);
  expect((await files.list('a', {}, page)).total).toBe(2);
});

test('an attempt has so many transfers at a time, and each has its number', async () => {
  const run = new RunFiles(files, job);
  const stop = new AbortController();
  for (let i = 0; i < 16; i++) await run.ask('file-put', piece(null), stop.signal);

  await expect(run.ask('file-put', piece(null), stop.signal)).rejects.toThrow(/16 files at a time/);
  await expect(run.ask('file-put', piece(99), stop.signal)).rejects.toThrow(/no part of a file/);
  await expect(run.ask('file-put', { name: 1 }, stop.signal)).rejects.toThrow(/no part of a file/);
  await expect(run.ask('file-get', { reading: 'x' }, signal)).rejects.toThrow(/no part of a file/);
  stop.abort();
});
