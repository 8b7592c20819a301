/**
 * What the platform owes when it is killed during a tick, between outbox and delivery, and during a
 * delivery: one run a slot and a row for every slot; every event delivered, under one delivery id
 * and with the same bytes however often it is sent.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, rounds } from '../support/soak.ts';
import {
  type Received,
  receiverAuthorityFile,
  startTlsReceiver,
  type TlsReceiver,
} from '../support/tls-receiver.ts';
import { waitFor } from '../support/wait-for.ts';

const kills = rounds(3, 20);
const killsInTicks = rounds(1, 20);
/** Rounds in which nothing is answered before the kill, so that the same deliveries are lost each time. */
const slowRounds = { from: rounds(1, 4), to: rounds(2, 12) };
const fastClock = join(import.meta.dirname, '../fixtures/fast-clock.ts');
const minuteMs = 60_000;

let dataDir: string;
let receiver: TlsReceiver;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-kill-'));
  receiver = await startTlsReceiver();
});
afterEach(async () => {
  await receiver.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const environment = () => ({
  EXECUTORS: '1',
  RETRY_BACKOFF_MS: '10',
  LOG_LEVEL: 'info',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  WEBHOOK_RETRY_DELAYS: '1,1,1,1,1',
  NODE_EXTRA_CA_CERTS: receiverAuthorityFile,
});

/** Kills the platform and starts it again on what it left. */
async function killAndRestart(
  platform: PlatformProcess,
  restart: () => Promise<PlatformProcess>,
): Promise<PlatformProcess> {
  platform.signal('SIGKILL');
  expect((await platform.exit).signal).toBe('SIGKILL');
  return restart();
}

async function post(platform: PlatformProcess, key: string, path: string, body: unknown) {
  const answer = await platform.request('POST', path, { key, body });
  if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`);
  return answer.body;
}

const events = [
  'skill.completed',
  'skill.failed',
  'conversation.created',
  'scheduled_job.completed',
  'scheduled_job.failed',
];

/** A webhook for everything that happens to the default agent. */
function addWebhook(platform: PlatformProcess, key: string) {
  return post(platform, key, '/api/agent-webhooks', {
    agent_id: 'default',
    url: `${receiver.origin}/hook`,
    events,
  });
}

/** Waits until no job and no delivery is left to be done. */
async function untilNothingIsLeft(): Promise<void> {
  const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
  const left = store.prepare(`
    SELECT (SELECT count(*) FROM jobs WHERE due_at IS NOT NULL)
      + (SELECT count(*) FROM webhook_deliveries WHERE status IN ('pending', 'delivering'))
      + (SELECT count(*) FROM events WHERE id NOT IN (SELECT event_id FROM webhook_deliveries)) AS n`);
  try {
    await waitFor(() => left.get()?.['n'] === 0, {
      describe: () => `nothing is left to be done; there were ${left.get()?.['n']}: ${states()}`,
      deadlineMs: 60_000,
      everyMs: 100,
    });
  } finally {
    store.close();
  }
}

/** Lets the platform do what is left, and stops it. */
async function drain(platform: PlatformProcess): Promise<void> {
  await untilNothingIsLeft();
  await platform.stop();
}

/** How far everything is, for the words of a failure. */
function states(): string {
  return JSON.stringify([
    query('SELECT status, count(*) AS jobs FROM jobs GROUP BY status'),
    query('SELECT status, count(*) AS deliveries FROM webhook_deliveries GROUP BY status'),
    query('SELECT active, failing FROM webhooks'),
  ]);
}

function query(sql: string): Record<string, unknown>[] {
  const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
  try {
    return store.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    store.close();
  }
}

/** What the receiver got, held against the events that were recorded. */
function expectEveryEventDelivered(): void {
  const recorded = query('SELECT id, type FROM events').map(({ id, type }) => `${type} ${id}`);
  const byEvent = Map.groupBy(receiver.requests, ({ json }) => `${json.event} ${json.id}`);
  expect([...byEvent.keys()].toSorted()).toEqual(recorded.toSorted());
  const distinct = (requests: readonly Received[], pick: (one: Received) => unknown) =>
    new Set(requests.map(pick)).size;
  const inconsistent = [...byEvent].filter(
    ([, requests]) =>
      distinct(requests, ({ headers }) => headers['x-service-delivery']) !== 1 ||
      distinct(requests, ({ body }) => body.toString()) !== 1,
  );
  expect(inconsistent).toEqual([]);
}

describe('a process that is killed', () => {
  test(`${kills} times while it delivers has told every event in the end, under one delivery id`, {
    timeout: 240_000,
  }, async () => {
    beginChance();
    let isSlow = false;
    const slowIsOver = Promise.withResolvers<void>();
    // Slow enough that some are always on their way, and now and then one has to be sent again.
    receiver.answers(({ json }) => ({
      status: json.id.endsWith('0') && !isRepeated(json.id) ? 500 : 200,
      after: isSlow ? slowIsOver.promise : new Promise((resolve) => setTimeout(resolve, 20)),
    }));
    const isRepeated = (id: string) =>
      receiver.requests.filter(({ json }) => json.id === id).length > 1;
    let platform = await startProcess(dataDir, environment());
    const key = await platform.key();
    await addWebhook(platform, key);

    // Counted before each start, which may send what was lost before it is known to be ready.
    let before = 0;
    const restart = () => {
      before = receiver.requests.length;
      return startProcess(dataDir, environment());
    };

    for (let kill = 0; kill < kills; kill++) {
      if (kill === slowRounds.from) await untilNothingIsLeft();
      isSlow = kill >= slowRounds.from && kill < slowRounds.to;
      if (kill === slowRounds.to) slowIsOver.resolve();
      // Events of 10 runs are no more than one host's attempts at a time: none waits behind others.
      const runs = !isSlow ? 20 : kill === slowRounds.from ? 10 : 0;
      for (let i = 0; i < runs; i++) {
        await post(platform, key, '/api/util/v1.0/echo', { text: `${kill}.${i}` });
      }
      const target = before + randomInteger(1, isSlow ? 10 : 30);
      await waitFor(() => receiver.requests.length >= target, {
        describe: 'deliveries arrive',
        deadlineMs: 30_000,
        everyMs: 1,
      });
      platform = await killAndRestart(platform, restart);
    }
    await drain(platform);

    expectEveryEventDelivered();
    expect(query(`SELECT status, count(*) AS n FROM webhook_deliveries GROUP BY status`)).toEqual([
      { status: 'delivered', n: expect.any(Number) },
    ]);
  });

  test(`${killsInTicks === 1 ? 'once' : `${killsInTicks} times`} during ticks has one run a slot, a row for each, and every end told`, {
    timeout: 240_000,
  }, async () => {
    beginChance();
    const schedules = 30;
    // A minute passes every two seconds, so that the kills meet the ticks.
    const fast = {
      ...environment(),
      NODE_OPTIONS: `--import ${fastClock}`,
      SKILLWRIGHT_TEST_PACE: '30',
      SKILLWRIGHT_TEST_EPOCH: String(Date.now()),
      JOB_LEASE_MS: '3600000',
    };
    const start = () => startProcess(dataDir, fast);
    let platform = await start();
    const key = await platform.key();
    await addWebhook(platform, key);
    for (let i = 0; i < schedules; i++) {
      await post(platform, key, '/api/scheduled-jobs', {
        agent_id: 'default',
        skill_category: 'util',
        skill_name: 'echo',
        // Different texts that mean the same.
        cron_expression: `*${',*'.repeat(i)} * * * *`,
        input: { text: `schedule ${i}` },
      });
    }
    const store = new DatabaseSync(join(dataDir, 'skillwright.db'), { readOnly: true });
    onTestFinished(() => store.close());
    const counted = store.prepare('SELECT count(*) AS n FROM scheduled_runs');
    const fired = () => Number(counted.get()?.['n']);

    for (let kill = 0; kill < killsInTicks; kill++) {
      const target = fired() + randomInteger(1, 2 * schedules);
      await waitFor(() => fired() >= target, {
        describe: 'slots are dealt with',
        deadlineMs: 30_000,
        everyMs: 1,
      });
      platform = await killAndRestart(platform, start);
    }
    const ids = (await platform.request('GET', '/api/scheduled-jobs', { key })).body;
    for (const { id } of ids) {
      await platform.request('PUT', `/api/scheduled-jobs/${id}`, { key, body: { enabled: false } });
    }
    await drain(platform);

    const runs = query('SELECT scheduled_job_id, slot, outcome, job_id FROM scheduled_runs');
    const bySchedule = Map.groupBy(runs, ({ scheduled_job_id }) => scheduled_job_id);
    expect(bySchedule.size).toBe(schedules);
    for (const rows of bySchedule.values()) {
      const slots = rows.map(({ slot }) => Number(slot)).toSorted((a, b) => a - b);
      const first = slots[0] as number;
      expect(slots).toEqual(slots.map((_, i) => first + i * minuteMs));
    }
    const ran = runs.filter(({ outcome }) => outcome === 'fired' || outcome === 'caught_up');
    expect(ran.length).toBeGreaterThanOrEqual(killsInTicks);
    const jobs = query("SELECT id FROM jobs WHERE trigger_type = 'scheduled'");
    expect(ran.map(({ job_id }) => job_id).toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
    const ends = query(`
      SELECT json_extract(data, '$.job_id') AS job FROM events WHERE type LIKE 'scheduled_job.%'`);
    const cancelled = query("SELECT id FROM jobs WHERE status = 'cancelled'").length;
    expect(new Set(ends.map(({ job }) => job)).size).toBe(ends.length);
    expect(ends.length + cancelled).toBe(jobs.length);
    expectEveryEventDelivered();
  });
});
