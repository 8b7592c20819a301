/** Limits of skills, as clients and the world outside see them: runs are counted in a file. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Counted } from '../fixtures/skills/limited/counted.ts';
import { expectInvalid } from '../support/expectations.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { acting, dataDirectory, gate, play, stagedSkills } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const limited = join(import.meta.dirname, '../fixtures/skills/limited');
const counted = 'limited/v1.0/counted';
const free = 'limited/v1.0/free';

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({
    skillsDirs: [...stagedSkills, limited],
    environment: { WORKER_CONCURRENCY: '8' },
  });
});
afterAll(() => platform.stop());

/** A file in which runs are counted, and how many there were in all and at a time. */
function counter() {
  const log = join(dataDirectory(), 'counts');
  const read = () => {
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
    let now = 0;
    let most = 0;
    for (const line of lines) {
      now += line === '+' ? 1 : -1;
      most = Math.max(most, now);
    }
    return { most, all: lines.filter((line) => line === '+').length, now };
  };
  return { log, read };
}

const ended = async (tenant: Tenant, ids: readonly string[]) => {
  const jobs = await Promise.all(ids.map((id) => tenant.jobIn(id, 'completed', 'failed')));
  return jobs.map(({ body }) => body.status as string);
};

describe('concurrency', () => {
  test('jobs of all organizations together never pass the limit, reach it, and all end', async () => {
    const tenants = [await newTenant(platform), await newTenant(platform)];
    const { log, read } = counter();
    const input: Counted = { log, ms: 20, meets: 2 };

    const ids = await Promise.all(
      tenants.map((tenant) =>
        Promise.all(Array.from({ length: 8 }, () => tenant.start(counted, input))),
      ),
    );

    for (const [i, tenant] of tenants.entries()) {
      expect(await ended(tenant, ids[i] ?? [])).toEqual(Array(8).fill('completed'));
    }
    expect(read()).toEqual({ most: 2, all: 16, now: 0 });
  });

  test('a job that waits says for which limit', async () => {
    const tenant = await newTenant(platform);
    const { log } = counter();
    const end = gate();
    const input: Counted = { log, until: end.path };
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await tenant.start(counted, input));

    const { body } = await tenant.get(`/api/jobs/${ids[2]}`);

    expect(body).toMatchObject({ status: 'queued', waiting_for: `concurrency of ${counted}` });
    end.open();
    await ended(tenant, ids);
    const { body: last } = await tenant.get(`/api/jobs/${ids[2]}`);
    expect(last).toMatchObject({ status: 'completed', waiting_for: null });
  });

  test('skills that code calls wait for a place instead of failing', async () => {
    const tenant = await newTenant(platform);
    const { log, read } = counter();
    const calls = Array.from({ length: 6 }, () => [counted, { log, ms: 20, meets: 2 }] as const);
    const outside = counter();

    const { body } = await tenant.run(free, { log: outside.log, calls });

    expect(body).toMatchObject({ status: 'completed', error: null });
    expect(read()).toEqual({ most: 2, all: 6, now: 0 });
  });

  test('runs that call their own skill need no second place, so that none waits for itself', async () => {
    const tenant = await newTenant(platform);
    const { log } = counter();
    const own: Counted = { log, calls: [[counted, { log }]] };
    const overAnother: Counted = { log, calls: [[free, { log, calls: [[counted, { log }]] }]] };

    const ids = await Promise.all(
      [own, overAnother, own, overAnother].map((input) => tenant.start(counted, input)),
    );

    expect(await ended(tenant, ids)).toEqual(Array(4).fill('completed'));
  });

  test('runs that wait for the place of each other end, because a call of one of them fails', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const { log } = counter();
    const calling = (skill: string): Counted => ({
      ...{ log, meets: 2, until: end.path },
      calls: [[skill, { log }]],
    });
    const ids = [
      await tenant.start('limited/v1.0/first', calling('limited/v1.0/second')),
      await tenant.start('limited/v1.0/second', calling('limited/v1.0/first')),
    ];

    end.open();

    const jobs = await Promise.all(ids.map((id) => tenant.jobIn(id, 'completed', 'failed')));
    expect(jobs.map(({ body }) => body.status)).toEqual(['completed', 'completed']);
    expect(jobs.reduce((sum, { body }) => sum + body.attempt, 0)).toBeGreaterThanOrEqual(3);
  });

  test('runs whose calls wait for the place of each other with calls of their own end, too', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const { log } = counter();
    const calling = (outer: string, inner: string): Counted => ({
      log: counter().log,
      calls: [[outer, { log, meets: 2, until: end.path, calls: [[inner, { log }]] }]],
    });
    const ids = [
      await tenant.start(free, calling('limited/v1.0/first', 'limited/v1.0/second')),
      await tenant.start(free, calling('limited/v1.0/second', 'limited/v1.0/first')),
    ];

    end.open();

    const jobs = await Promise.all(ids.map((id) => tenant.jobIn(id, 'completed', 'failed')));
    expect(jobs.map(({ body }) => body.status)).toEqual(['completed', 'completed']);
    expect(jobs.reduce((sum, { body }) => sum + body.attempt, 0)).toBeGreaterThanOrEqual(3);
  });

  test('a call that gets no place within half of the time of its run fails with no_place', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const { log } = counter();
    const holder = await tenant.start('limited/v1.0/first', { log, until: end.path });
    await tenant.jobIn(holder, 'active');

    const { body } = await tenant.run('limited/v1.0/impatient', {});

    expect(body).toMatchObject({
      status: 'completed',
      attempt: 1,
      output: { code: 'no_place', retryable: true },
    });
    expect(body.output.message).toContain('concurrency of limited/v1.0/first');
    end.open();
    expect(await ended(tenant, [holder])).toEqual(['completed']);
  });

  test('jobs that runs start wait for a place, and a run that waits for them holds none', async () => {
    const tenant = await newTenant(platform);
    const { log, read } = counter();
    const runs = [
      [counted, { log, ms: 10 }],
      [counted, { log, ms: 10 }],
    ] as const;

    const ids = await Promise.all(
      Array.from({ length: 4 }, () => tenant.start(counted, { log, runs })),
    );

    expect(await ended(tenant, ids)).toEqual(Array(4).fill('completed'));
    expect(read()).toMatchObject({ all: 8, now: 0 });
    expect(read().most).toBeLessThanOrEqual(2);
  });

  test('per client-key counts the runs of one x-concurrency-key', async () => {
    const tenant = await newTenant(platform);
    const { log, read } = counter();
    const skill = 'limited/v1.0/by-client';
    const input: Counted = { log, ms: 20 };

    const ids = await Promise.all(
      Array.from({ length: 5 }, () => tenant.start(skill, input, { 'x-concurrency-key': 'a' })),
    );

    expect(await ended(tenant, ids)).toEqual(Array(5).fill('completed'));
    expect(read()).toEqual({ most: 1, all: 5, now: 0 });
  });

  test('an x-concurrency-key that is empty or too long is refused', async () => {
    const tenant = await newTenant(platform);

    for (const key of ['', 'x'.repeat(201), 'x'.repeat(5_000)]) {
      const response = await tenant.post(`/api/${free}`, {}, { 'x-concurrency-key': key });
      expectInvalid(response, 'x-concurrency-key');
    }
  });
});

describe('retryAfterMs of an error', () => {
  test('puts the next attempt off for so long, and an hour at most', async () => {
    const tenant = await newTenant(platform);
    const untilNext = async (retryAfterMs: number) => {
      const fail = { message: 'too many requests', code: 'upstream_unavailable', retryAfterMs };
      const id = await tenant.start(play, acting({ fail }));
      const { body } = await waitFor(
        async () => {
          const answer = await tenant.get(`/api/jobs/${id}`);
          return answer.body.error !== null && answer;
        },
        { describe: 'its first attempt has failed' },
      );
      expect(body).toMatchObject({ status: 'queued', attempt: 1, error: { code: fail.code } });
      return Date.parse(body.run_at) - Date.parse(body.started_at);
    };

    expect(await untilNext(600_000)).toBeGreaterThanOrEqual(600_000);
    const most = await untilNext(86_400_000);
    expect(most).toBeGreaterThanOrEqual(3_600_000);
    expect(most).toBeLessThan(86_400_000);
  });
});
