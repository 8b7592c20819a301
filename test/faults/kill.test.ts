/**
 * Accepted means durable (docs/decisions/jobs.md): the process is killed at random moments under load, started
 * again on the same data, and in the end everything accepted has ended and was recorded once.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSqlite } from '../../src/adapters/database/sqlite.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { childProcesses } from '../fixtures/skills/driver.ts';
import { recordEvents } from '../support/outbox.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, rounds } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(2, 20);
const clients = 8;

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-kill-'));
});
afterEach(() => {
  rmSync(dataDir, { recursive: true, force: true });
});

/** Posts until the platform is gone; the ids of what was accepted. */
async function load(platform: PlatformProcess, key: string, accepted: Set<string>): Promise<void> {
  for (;;) {
    try {
      const answer = await platform.request('POST', '/api/util/v1.0/echo', {
        key,
        body: { text: `job ${accepted.size}` },
      });
      if (answer.status === 202) accepted.add(answer.body.job_id);
    } catch {
      return;
    }
  }
}

describe('a process that is killed', () => {
  test(`${kills} times under load loses no accepted job and records none twice`, {
    timeout: 180_000,
  }, async () => {
    beginChance();
    const accepted = new Set<string>();
    const environment = { EXECUTORS: '1', RETRY_BACKOFF_MS: '10', LOG_LEVEL: 'info' };
    const database = await openSqlite(dataDir, createLogger('silent'));
    await recordEvents(database);
    await database.close();
    let platform = await startProcess(dataDir, environment);
    const key = await platform.key();
    for (let kill = 0; kill < kills; kill++) {
      const before = accepted.size;
      const loads = Array.from({ length: clients }, () => load(platform, key, accepted));
      // A random number of acceptances is a random moment of everything that goes on beside them.
      const target = before + 1 + randomInteger(0, 149);
      await waitFor(() => accepted.size >= target, { describe: 'jobs are accepted', everyMs: 1 });
      platform.signal('SIGKILL');
      await Promise.all(loads);
      expect((await platform.exit).signal).toBe('SIGKILL');
      platform = await startProcess(dataDir, environment);
    }
    await waitFor(
      async () => {
        const queued = await platform.request('GET', '/api/jobs?status=queued', { key });
        const active = await platform.request('GET', '/api/jobs?status=active', { key });
        return queued.body.total + active.body.total === 0;
      },
      { describe: 'every job has ended', deadlineMs: 30_000 },
    );
    await platform.stop();

    const found = inspect(accepted);
    expect(found).toEqual({
      accepted: accepted.size,
      ended: accepted.size,
      unended: 0,
      wrongCounts: 0,
      jobsWithoutTheirTerminalEvent: 0,
      jobsWithoutTheirConversation: 0,
      completedWithoutTwoMessages: 0,
    });
  });

  test('while it accepts a batch and while the jobs of that run has one batch, whose jobs all end once', {
    timeout: 120_000,
  }, async () => {
    beginChance();
    const environment = { EXECUTORS: '1', RETRY_BACKOFF_MS: '10', LOG_LEVEL: 'info' };
    const database = await openSqlite(dataDir, createLogger('silent'));
    await recordEvents(database);
    await database.close();
    let platform = await startProcess(dataDir, environment);
    const key = await platform.key();
    const items = Array.from({ length: 300 }, (_, i) => ({
      ...{ skill: 'util/v1.0/echo', input: { text: `item ${i}` } },
    }));
    const send = () =>
      platform.request('POST', '/api/batches', {
        key,
        headers: { 'idempotency-key': 'one' },
        body: { items },
      });
    const restart = async () => {
      platform.signal('SIGKILL');
      await platform.exit;
      platform = await startProcess(dataDir, environment);
    };

    const lost = send().catch(() => null);
    for (let turns = randomInteger(0, 40); turns > 0; turns--) await setImmediate();
    await restart();
    await lost;
    const { status, body: batch } = await send();
    const get = (path: string) => platform.request('GET', path, { key });
    await waitFor(async () => (await get(`/api/batches/${batch.id}`)).body.progress > 0, {
      describe: 'some jobs have ended',
      everyMs: 1,
    });
    await restart();
    const done = await waitFor(
      async () => {
        const { body } = await get(`/api/batches/${batch.id}`);
        return body.completed_at === null ? null : body;
      },
      { describe: 'the batch is completed', deadlineMs: 60_000 },
    );
    const again = await send();
    await platform.stop();

    expect(status).toBe(202);
    expect(done).toMatchObject({ accepted: 300, counts: { completed: 300 }, progress: 1 });
    expect(again.body.items).toEqual(batch.items);
    const ids = batch.items.map(({ job_id }: { job_id: string }) => job_id);
    expect(inspect(new Set(ids))).toMatchObject({
      ...{ accepted: 300, ended: 300, unended: 0, wrongCounts: 0 },
      ...{ jobsWithoutTheirTerminalEvent: 0, completedWithoutTwoMessages: 0 },
    });
    const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
    const events = store.prepare("SELECT data FROM events WHERE type = 'batch.completed'").all();
    const jobs = store.prepare('SELECT count(*) AS n FROM jobs').get();
    store.close();
    expect(events).toHaveLength(1);
    expect(jobs).toEqual({ n: 300 });
  });

  test('while an executor starts has begun no code: a job with one attempt still has it', async () => {
    const loading = join(dataDir, 'loading.mjs');
    const mayLoad = join(dataDir, 'may-load');
    const ran = join(dataDir, 'ran');
    writeFileSync(
      loading,
      `import { appendFileSync, existsSync } from 'node:fs';
      import { setTimeout as elapsed } from 'node:timers/promises';
      while (!existsSync(${JSON.stringify(mayLoad)})) await elapsed(10);
      export default {
        category: 'own', name: 'once', version: 'v1.0', displayName: 'Once', description: 'Acts once.',
        parameters: {}, output: {}, maxAttempts: 1,
        run() { appendFileSync(${JSON.stringify(ran)}, 'x'); return {}; },
      };`,
    );
    writeFileSync(mayLoad, '');
    const environment = {
      SKILLS_DIR: dataDir,
      EXECUTORS: '1',
      EXECUTORS_IDLE_SECONDS: '1',
      LOG_LEVEL: 'info',
    };
    const first = await startProcess(dataDir, environment);
    const key = await first.key();
    const executors = () =>
      [...childProcesses(first.pid).values()].filter((command) =>
        /^skill executor|executors\/child/.test(command),
      );
    await waitFor(() => executors().length === 0, { describe: 'the executors have ended' });
    rmSync(mayLoad);

    const { body } = await first.request('POST', '/api/own/v1.0/once', { key, body: {} });
    const get = (platform: PlatformProcess) =>
      platform.request('GET', `/api/jobs/${body.job_id}`, { key });
    await waitFor(() => executors().length > 0, { describe: 'an executor starts' });
    expect((await get(first)).body).toMatchObject({ status: 'active', attempt: 1 });
    first.signal('SIGKILL');
    await first.exit;
    writeFileSync(mayLoad, '');
    const second = await startProcess(dataDir, environment);

    const ended = await waitFor(
      async () => {
        const job = (await get(second)).body;
        return ['queued', 'active'].includes(job.status) ? null : job;
      },
      { describe: 'the job has ended' },
    );
    await second.stop();
    expect(ended).toMatchObject({ status: 'completed', attempt: 1, error: null });
    expect(readFileSync(ran, 'utf8')).toBe('x');
  });
});

/** Reads the store itself: what of the accepted is there, and whether everything is there once. */
function inspect(accepted: ReadonlySet<string>) {
  const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
  const one = (sql: string) => Number(Object.values(store.prepare(sql).get() ?? {})[0]);
  const ended = new Set(
    store
      .prepare("SELECT id FROM jobs WHERE status IN ('completed', 'failed')")
      .all()
      .map((row) => row['id'] as string),
  );
  const result = {
    accepted: accepted.size,
    ended: [...accepted].filter((id) => ended.has(id)).length,
    unended: one("SELECT count(*) FROM jobs WHERE status IN ('queued', 'active')"),
    wrongCounts: one(`
      SELECT count(*) FROM (
        SELECT status, sum(n) AS n FROM (
          SELECT status, count(*) AS n FROM jobs GROUP BY status
          UNION ALL SELECT status, -sum(count) FROM job_counts GROUP BY status
        ) GROUP BY status HAVING sum(n) <> 0
      )`),
    jobsWithoutTheirTerminalEvent: one(`
      SELECT count(*) FROM jobs WHERE 1 <> (
        SELECT count(*) FROM events
        WHERE type IN ('skill.completed', 'skill.failed') AND json_extract(data, '$.job_id') = jobs.id
      )`),
    jobsWithoutTheirConversation: one(`
      SELECT count(*) FROM jobs LEFT JOIN conversations ON conversations.id = conversation_id
      WHERE conversations.status IS NULL OR conversations.status <> jobs.status`),
    completedWithoutTwoMessages: one(`
      SELECT count(*) FROM jobs WHERE status = 'completed'
        AND 2 <> (SELECT count(*) FROM messages WHERE job_id = jobs.id
          AND messages.conversation_id = jobs.conversation_id)`),
  };
  store.close();
  return result;
}
