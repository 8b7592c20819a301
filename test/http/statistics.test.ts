/** Statistics of runs, and users of a skill version, as clients see them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { acting, dataDirectory, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const echo = 'util/v1.0/echo';
const none = { accepted: 0, completed: 0, failed: 0, cancelled: 0 };
const fails = acting({ fail: { message: 'no', retryable: false } });

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

async function statistics(tenant: Tenant, window = 'hour'): Promise<Body> {
  const { status, body } = await tenant.get(`/api/statistics?window=${window}`);
  expect(status).toBe(200);
  return body;
}

/** The statistics once their totals are these: counted runs is written within a second. */
function counted(tenant: Tenant, totals: object, window = 'hour'): Promise<Body> {
  let last: Body;
  return waitFor(
    async () => {
      last = await statistics(tenant, window);
      expect(last.totals).toMatchObject(totals);
      return last;
    },
    { describe: () => `the totals are ${JSON.stringify(totals)}: ${JSON.stringify(last?.totals)}` },
  );
}

/** What is not zero, by when its bucket begins. */
const busy = (body: Body): Body =>
  Object.fromEntries(
    body.buckets
      .filter((bucket: Body) =>
        ['accepted', 'completed', 'failed', 'cancelled'].some((name) => bucket[name] > 0),
      )
      .map(({ start, ...bucket }: Body) => [start, bucket]),
  );

const noTokenTotals = {
  ...{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
  ...{ tokens_are_partial: false, cost_usd: 0, cost_is_partial: false },
};

describe('GET /api/statistics', () => {
  const clock = manualClock('2026-11-21T12:07:30.000Z');
  let platform: Platform;
  beforeAll(async () => {
    platform = await startStaged({ clock, environment: { WORKER_CONCURRENCY: '2' } });
  });
  afterAll(() => platform.stop());

  test('of an organization without runs covers the last hour by minutes, with zeros', async () => {
    const tenant = await newTenant(platform);
    const first = Date.parse('2026-11-21T11:08:00.000Z');

    const { status, body } = await tenant.get('/api/statistics');

    expect(status).toBe(200);
    expect(body).toEqual({
      window: 'hour',
      from: '2026-11-21T11:08:00.000Z',
      to: '2026-11-21T12:08:00.000Z',
      bucket_seconds: 60,
      now: { queued: 0, active: 0, waiting: 0, oldest_waiting_seconds: null },
      totals: { ...none, ...noTokenTotals },
      buckets: Array.from({ length: 60 }, (_, i) => ({
        start: new Date(first + i * minuteMs).toISOString(),
        ...none,
        total_tokens: 0,
        average_duration_ms: null,
      })),
      skills: [],
    });
    expect(await statistics(tenant, 'hour')).toEqual(body);
  });

  test('of a day is by quarters of an hour', async () => {
    const body = await statistics(await newTenant(platform), 'day');

    expect(body).toMatchObject({
      window: 'day',
      from: '2026-11-20T12:15:00.000Z',
      to: '2026-11-21T12:15:00.000Z',
      bucket_seconds: 900,
    });
    expect(body.buckets).toHaveLength(96);
    expect(body.buckets[0].start).toBe('2026-11-20T12:15:00.000Z');
    expect(body.buckets[95].start).toBe('2026-11-21T12:00:00.000Z');
  });

  test('of any other window is refused', async () => {
    const tenant = await newTenant(platform);

    for (const query of ['window=week', 'window=', 'window=Hour', 'window=hour&window=day']) {
      expectInvalid(await tenant.get(`/api/statistics?${query}`), 'window');
    }
  });

  test('counts a run where it was accepted and where it ended, with how long it took', async () => {
    clock.jumpTo(Date.parse('2026-11-22T12:14:30.000Z'));
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(jobId, 'active');
    clock.advance(45_000);
    end.open();
    await tenant.jobIn(jobId, 'completed');
    await tenant.run(echo, { text: 'x' });
    await tenant.run(play, fails);

    const body = await counted(tenant, { accepted: 3, completed: 2, failed: 1, cancelled: 0 });

    expect(busy(body)).toEqual({
      '2026-11-22T12:14:00.000Z': {
        ...none,
        accepted: 1,
        total_tokens: 0,
        average_duration_ms: null,
      },
      '2026-11-22T12:15:00.000Z': {
        ...{ accepted: 2, completed: 2, failed: 1, cancelled: 0 },
        total_tokens: 0,
        average_duration_ms: 15_000,
      },
    });
    expect(body.skills).toEqual([
      {
        ...{ skill_category: 'staged', skill_name: 'play', skill_version: 'v1.0' },
        ...{ completed: 1, failed: 1, cancelled: 0 },
        ...{ average_duration_ms: 22_500, longest_duration_ms: 45_000 },
      },
      {
        ...{ skill_category: 'util', skill_name: 'echo', skill_version: 'v1.0' },
        ...{ completed: 1, failed: 0, cancelled: 0 },
        ...{ average_duration_ms: 0, longest_duration_ms: 0 },
      },
    ]);
    expect(Object.keys(busy(await statistics(tenant, 'day')))).toEqual([
      '2026-11-22T12:00:00.000Z',
      '2026-11-22T12:15:00.000Z',
    ]);
  });

  test('drops runs older than an hour, and older than a day', async () => {
    clock.jumpTo(Date.parse('2026-11-25T12:07:30.000Z'));
    const tenant = await newTenant(platform);
    await tenant.run(echo, { text: 'x' });
    await counted(tenant, { accepted: 1, completed: 1 });

    clock.advance(59 * minuteMs);
    expect((await statistics(tenant)).buckets[0]).toMatchObject({ accepted: 1, completed: 1 });
    clock.advance(minuteMs);
    expect(await statistics(tenant)).toMatchObject({ totals: none, skills: [] });
    expect(await statistics(tenant, 'day')).toMatchObject({ totals: { accepted: 1 } });
    clock.advance(dayMs - 60 * minuteMs);
    expect(await statistics(tenant, 'day')).toMatchObject({ totals: none, skills: [] });
  });

  test('counts a run once, with any number of attempts, and does not count a repeated request', async () => {
    const tenant = await newTenant(platform);
    const attempts = [[{ fail: { message: 'once' } }], []];
    const jobId = await tenant.start(play, { attempts }, { 'idempotency-key': 'one' });
    await tenant.start(play, { attempts }, { 'idempotency-key': 'one' });
    await waitFor(async () => (await tenant.jobIn(jobId, 'queued')).body.attempt === 1, {
      describe: 'the first attempt has failed',
    });
    clock.advance(dayMs / 24);
    const { body } = await tenant.jobIn(jobId, 'completed');
    expect(body.attempt).toBe(2);

    await counted(tenant, { ...none, accepted: 1, completed: 1 }, 'day');
  });

  test('counts active and queued jobs that were cancelled, without a duration', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const start = () => tenant.start(play, acting({ until: end.path }));
    const [first, second, waiting] = [await start(), await start(), await start()];
    await tenant.jobIn(first, 'active');
    await tenant.jobIn(second, 'active');
    clock.advance(1_000);
    for (const id of [first, waiting]) await tenant.post(`/api/jobs/${id}/cancel`);
    await tenant.jobIn(first, 'cancelled');
    await tenant.jobIn(waiting, 'cancelled');

    const body = await counted(tenant, { ...none, accepted: 3, cancelled: 2 });
    expect(body.skills).toMatchObject([
      { cancelled: 2, average_duration_ms: null, longest_duration_ms: null },
    ]);
    expect(body.now).toMatchObject({ queued: 0, active: 1 });
    end.open();
    await tenant.jobIn(second, 'completed');
  });

  test('counts a retry as a run of its own', async () => {
    const tenant = await newTenant(platform);
    const failed = await tenant.run(play, fails);
    const { body } = await tenant.post(`/api/jobs/${failed.body.job_id}/retry`);
    await tenant.jobIn(body.job_id, 'failed');

    await counted(tenant, { ...none, accepted: 2, failed: 2 });
  });

  test('has the queued and active jobs, and how long the oldest has been due', async () => {
    const [tenant, other, third] = [
      await newTenant(platform),
      await newTenant(platform),
      await newTenant(platform),
    ];
    const end = gate();
    const busyJobs = [
      await other.start(play, acting({ until: end.path })),
      await other.start(play, acting({ until: end.path })),
    ];
    for (const id of busyJobs) await other.jobIn(id, 'active');
    // The slot that is kept for organizations that run nothing.
    const kept = await third.start(play, acting({ until: end.path }));
    await third.jobIn(kept, 'active');
    const theirs = await other.start(echo, { text: 'x' });
    clock.advance(4_000);
    const jobIds = [await tenant.start(echo, { text: 'x' })];
    clock.advance(2_500);
    jobIds.push(await tenant.start(echo, { text: 'x' }));

    expect((await statistics(tenant)).now).toEqual({
      ...{ queued: 2, active: 0, waiting: 0, oldest_waiting_seconds: 2.5 },
    });
    expect((await statistics(other)).now).toEqual({
      ...{ queued: 1, active: 2, waiting: 0, oldest_waiting_seconds: 6.5 },
    });
    end.open();
    for (const id of jobIds) await tenant.jobIn(id, 'completed');
    for (const id of [...busyJobs, theirs]) await other.jobIn(id, 'completed');
    expect((await statistics(tenant)).now).toEqual({
      ...{ queued: 0, active: 0, waiting: 0, oldest_waiting_seconds: null },
    });
  });

  test('a run that waits for its next attempt is queued, but not due', async () => {
    const tenant = await newTenant(platform);
    const jobId = await tenant.start(play, { attempts: [[{ fail: { message: 'once' } }], []] });
    await waitFor(async () => (await tenant.jobIn(jobId, 'queued')).body.attempt === 1, {
      describe: 'the first attempt has failed',
    });

    const { now } = await statistics(tenant);
    expect(now).toEqual({ queued: 1, active: 0, waiting: 0, oldest_waiting_seconds: null });
    clock.advance(dayMs / 24);
    await tenant.jobIn(jobId, 'completed');
  });

  test('has no data of another organization', async () => {
    const [a, b] = [await newTenant(platform), await newTenant(platform)];
    await a.run(echo, { text: 'x' });
    await counted(a, { accepted: 1, completed: 1 });

    expect(await statistics(b)).toMatchObject({ totals: none, skills: [] });
    expect(busy(await statistics(b, 'day'))).toEqual({});
  });

  test('is refused without a key', async () => {
    expectRefusal(await platform.request('GET', '/api/statistics'), 401, 'authentication_required');
  });
});

describe('counted runs', () => {
  test('outlives a restart, up to the last run before it', async () => {
    const environment = { DATA_DIR: dataDirectory() };
    const first = await startStaged({ environment });
    const tenant = await newTenant(first);
    for (let i = 0; i < 5; i++) await tenant.run(echo, { text: 'x' });
    await first.stop();

    const second = await startStaged({ environment });
    const { body } = await second.request('GET', '/api/statistics?window=day', { key: tenant.key });
    await second.stop();

    expect(body.totals).toMatchObject({ ...none, accepted: 5, completed: 5 });
  });
});

describe('tokens', () => {
  let world: Thinkers;
  beforeAll(async () => {
    world = await startThinkers();
  });
  afterAll(() => world.stop());

  test('are those that providers reported, of every call', async () => {
    const thinker = await newThinker(world.platform, {});
    world.provider.script(() => ({ text: 'Done.', usage: { prompt: 31, completion: 2 } }));
    await thinker.task('One');
    await thinker.task('Two');

    const body = await counted(thinker, {
      ...{ completed: 2, prompt_tokens: 62, completion_tokens: 4, total_tokens: 66 },
      ...{ tokens_are_partial: false, cost_usd: null, cost_is_partial: true },
    });
    const sum = body.buckets.reduce((all: number, one: Body) => all + one.total_tokens, 0);
    expect(sum).toBe(66);
  });
});

describe('GET /api/skills/:category/:version/:skillName/usages', () => {
  const clock = manualClock('2026-11-21T23:59:00.000Z');
  let platform: Platform;
  beforeAll(async () => {
    platform = await startStaged({ clock });
  });
  afterAll(() => platform.stop());

  const nothing = {
    ...{ scheduled_jobs: [], total_scheduled_jobs: 0 },
    ...{ agent_triggers: [], total_agent_triggers: 0 },
    ...{ api_keys: [], total_api_keys: 0 },
  };
  const uses = async (tenant: Tenant, skill = echo): Promise<Body> =>
    (await tenant.get(`/api/skills/${skill}/usages`)).body;
  const usedBy = (tenant: Tenant, keys: object[], skill = echo) =>
    waitFor(
      async () => {
        const body = await uses(tenant, skill);
        expect(body.api_keys).toEqual(keys);
        return body;
      },
      { describe: `${skill} was used by ${JSON.stringify(keys)}` },
    );

  /** What names a skill version in a body. */
  const naming = (skill: string) => {
    const [skill_category, skill_version, skill_name] = skill.split('/');
    return { agent_id: 'default', skill_category, skill_version, skill_name };
  };
  async function make(tenant: Tenant, path: string, fields: object): Promise<Body> {
    const { status, body } = await tenant.post(path, fields);
    expect(status).toBe(201);
    return body;
  }
  const schedule = (tenant: Tenant, skill: string, fields: object = {}) =>
    make(tenant, '/api/scheduled-jobs', {
      ...naming(skill),
      cron_expression: '0 0 1 1 *',
      input: { text: 'x' },
      ...fields,
    });
  const addTrigger = (tenant: Tenant, skill: string, fields: object = {}) =>
    make(tenant, '/api/agent-triggers', { ...naming(skill), name: 'calls', ...fields });

  test('of an unused version is empty', async () => {
    const { status, body } = await (await newTenant(platform)).get(`/api/skills/${echo}/usages`);

    expect(status).toBe(200);
    expect(body).toEqual(nothing);
  });

  test('names the schedules and triggers of that version alone, the newest first', async () => {
    const tenant = await newTenant(platform);
    const first = await schedule(tenant, 'staged/v1.9/versions');
    const second = await schedule(tenant, 'staged/v1.9/versions', {
      ...{ cron_expression: '5 0 1 1 *', enabled: false },
    });
    await schedule(tenant, 'staged/v1.10/versions');
    const trigger = await addTrigger(tenant, 'staged/v1.9/versions');
    const off = await addTrigger(tenant, 'staged/v1.9/versions', { active: false });
    await addTrigger(tenant, 'staged/v2.0/versions');

    expect(await uses(tenant, 'staged/v1.9/versions')).toEqual({
      scheduled_jobs: [
        {
          ...{ id: second.id, agent_id: 'default' },
          ...{ cron_expression: '5 0 1 1 *', enabled: false },
        },
        {
          ...{ id: first.id, agent_id: 'default' },
          ...{ cron_expression: '0 0 1 1 *', enabled: true },
        },
      ],
      total_scheduled_jobs: 2,
      agent_triggers: [
        { id: off.id, name: 'calls', agent_id: 'default', active: false },
        { id: trigger.id, name: 'calls', agent_id: 'default', active: true },
      ],
      total_agent_triggers: 2,
      api_keys: [],
      total_api_keys: 0,
    });
  });

  test('names the keys that ran it, the last used first, with their runs of 30 days', async () => {
    const one = await newTenant(platform, { client_name: 'one' });
    const { organization: organization_id } = one;
    const two = await newTenant(platform, { client_name: 'two', organization_id });
    const start = new Date(clock.now());
    for (let i = 0; i < 2; i++) await one.run(echo, { text: 'x' });
    await two.run(play, acting());
    clock.advance(minuteMs);
    await two.run(echo, { text: 'x' });
    const next = new Date(clock.now()).toISOString();

    const byTwo = { id: two.keyId, client_name: 'two', runs: 1, last_used_at: next };
    const byOne = {
      ...{ id: one.keyId, client_name: 'one', runs: 2, last_used_at: start.toISOString() },
    };
    expect(await usedBy(one, [byTwo, byOne])).toMatchObject({ total_api_keys: 2 });
    clock.advance(29 * dayMs);
    // The first day has gone, the second is the thirtieth.
    expect(await usedBy(one, [byTwo])).toMatchObject({ total_api_keys: 1 });
    clock.advance(dayMs);
    expect(await uses(one)).toEqual(nothing);
  });

  test('has no data of another organization', async () => {
    const [a, b] = [await newTenant(platform), await newTenant(platform)];
    await schedule(a, echo);
    await addTrigger(a, echo);
    await a.run(echo, { text: 'x' });
    await waitFor(async () => (await uses(a)).total_api_keys === 1, { describe: 'it is counted' });

    expect(await uses(b)).toEqual(nothing);
  });

  test('is answered for a deprecated version, too', async () => {
    const tenant = await newTenant(platform);
    await schedule(tenant, echo);
    await platform.admin('POST', `/admin/skills/${echo}/deprecate`);
    try {
      expect(await uses(tenant, echo)).toMatchObject({ total_scheduled_jobs: 1 });
    } finally {
      await platform.admin('POST', `/admin/skills/${echo}/activate`);
    }
  });

  test('of one that was never registered is 404 skill_not_found', async () => {
    const tenant = await newTenant(platform);

    for (const skill of ['util/v9.9/echo', 'nope/v1.0/echo', '__proto__/v1.0/x', '%20/%20/%20']) {
      const answer = await tenant.get(`/api/skills/${skill}/usages`);
      expectRefusal(answer, 404, 'skill_not_found');
    }
  });
});
