import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noTokenSums } from '../../src/adapters/http/schemas.ts';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type Answer, embeddedTest, type Platform } from '../support/platform.ts';
import { acting, beginning, dataDirectory, gate, play, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  // Two runs at a time, so that a job can be held in the queue.
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: '2' } });
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const randomId = '0198c0de-0000-7000-8000-000000000000';
const failing = acting({ fail: { message: 'no', retryable: false } });

const acceptedFields = [
  ...['job_id', 'status', 'conversation_id', 'agent_id', 'skill_category', 'skill_name'],
  ...['skill_version', 'created_at'],
].sort();
const listedFields = [...acceptedFields, 'parent_job_id'].sort();
const timedFields = [
  ...listedFields,
  ...[
    'error',
    'attempt',
    'max_attempts',
    'trigger_type',
    'user_id',
    'run_at',
    'expires_at',
    'started_at',
  ],
  ...['finished_at', 'duration_ms', 'is_trial'],
].sort();
const fullFields = [
  ...listedFields,
  ...[
    'input',
    'output',
    'error',
    'attempt',
    'max_attempts',
    'trigger_type',
    'user_id',
    'queue',
    'priority',
  ],
  ...[
    'run_at',
    'expires_at',
    'started_at',
    'finished_at',
    'duration_ms',
    'is_trial',
    'agent_overrides',
    'instruction_values',
    'agent_version',
    'erased_at',
  ],
  ...[
    'retry_of',
    'is_resumed',
    'batch_id',
    'waiting_for',
    'job_key',
    'replaced_by',
    'delivered_to',
    'progress',
    'token_stats',
    'nested_token_stats',
    'total_token_stats',
  ],
].sort();

const keysOf = (value: object) => Object.keys(value).sort();

describe('GET /api/jobs/:jobId', () => {
  test('has exactly the documented fields, in any state', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const active = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(active, 'active');
    const ids = [
      active,
      (await tenant.run(play, acting())).body.job_id,
      (await tenant.run(play, failing)).body.job_id,
    ];

    for (const id of ids) {
      expect(keysOf((await tenant.get(`/api/jobs/${id}`)).body)).toEqual(fullFields);
    }
  });

  test('of an active job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const input = acting({ progress: 0.25, note: 'a quarter' }, { until: end.path });
    const jobId = await tenant.start(play, input, { 'x-user-id': 'ada' });

    const body = await waitFor(
      async () => {
        const { body: job } = await tenant.get(`/api/jobs/${jobId}`);
        return job.progress === null ? null : job;
      },
      { describe: 'the run reports progress' },
    );

    expect(body).toEqual({
      job_id: jobId,
      status: 'active',
      conversation_id: anId,
      agent_id: 'default',
      skill_category: 'staged',
      skill_name: 'play',
      skill_version: 'v1.0',
      created_at: aTimestamp,
      input,
      output: null,
      error: null,
      attempt: 1,
      max_attempts: 3,
      trigger_type: 'api',
      user_id: 'ada',
      queue: 'skill-execution',
      priority: 'normal',
      run_at: aTimestamp,
      expires_at: null,
      started_at: aTimestamp,
      finished_at: null,
      duration_ms: null,
      retry_of: null,
      is_resumed: false,
      batch_id: null,
      waiting_for: null,
      job_key: null,
      replaced_by: null,
      delivered_to: null,
      agent_overrides: null,
      instruction_values: null,
      agent_version: null,
      erased_at: null,
      is_trial: false,
      parent_job_id: null,
      progress: { fraction: 0.25, note: 'a quarter' },
      ...noTokenSums,
    });
  });

  test('of a completed job: its times are in order, its progress the last that was reported', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run(
      play,
      acting({ progress: 0.5, note: 'half' }, { progress: 1 }),
    );

    expect(body).toMatchObject({ status: 'completed', progress: { fraction: 1, note: null } });
    const at = (field: string) => Date.parse(body[field]);
    expect(at('created_at')).toBeLessThanOrEqual(at('started_at'));
    expect(at('started_at')).toBeLessThanOrEqual(at('finished_at'));
    expect(body.duration_ms).toBe(at('finished_at') - at('started_at'));
  });

  test('of a failed job', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run(play, failing);

    expect(body).toMatchObject({
      status: 'failed',
      output: null,
      error: { code: 'skill_execution_failed', message: 'no' },
      finished_at: aTimestamp,
      attempt: 1,
    });
    expect(keysOf(body.error)).toEqual(['code', 'message']);
  });

  test('Prefer: wait=N works on it too', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(jobId, 'active');

    const early = await tenant.get(`/api/jobs/${jobId}`, { prefer: 'wait=1' });
    const waiting = tenant.get(`/api/jobs/${jobId}`, { prefer: 'wait=30' });
    end.open();
    const late = await waiting;
    const after = await tenant.get(`/api/jobs/${jobId}`, { prefer: 'wait=30' });

    expect(early.status).toBe(200);
    expect(early.body.status).toBe('active');
    expect(early.headers.get('preference-applied')).toBeNull();
    for (const answer of [late, after]) {
      expect(answer.status).toBe(200);
      expect(answer.body.status).toBe('completed');
      expect(answer.headers.get('preference-applied')).toBe('wait=30');
    }
  });

  test('an unknown id is 404 not_found, and so is an invalid id', async () => {
    const tenant = await newTenant(platform);

    for (const id of [randomId, 'x', '1', '%20', randomId.toUpperCase(), '__proto__', '*']) {
      expectRefusal(await tenant.get(`/api/jobs/${id}`), 404, 'not_found');
      const waiting = await tenant.get(`/api/jobs/${id}`, { prefer: 'wait=5' });
      expectRefusal(waiting, 404, 'not_found');
    }
  });
});

describe('GET /api/jobs', () => {
  test('is {data, total, limit, offset}, newest first, each with the fields of the 202', async () => {
    const tenant = await newTenant(platform);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.push(await tenant.start(echo, { text: `${i}` }));

    const { status, body } = await tenant.get('/api/jobs');

    expect(status).toBe(200);
    expect(keysOf(body)).toEqual(['data', 'limit', 'offset', 'total']);
    expect(body).toMatchObject({ total: 5, limit: 50, offset: 0 });
    expect(body.data.map((job: { job_id: string }) => job.job_id)).toEqual(ids.reverse());
    for (const job of body.data) expect(keysOf(job)).toEqual(listedFields);
  });

  test('limit and offset cut pages out of it', async () => {
    const tenant = await newTenant(platform);
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) ids.unshift(await tenant.start(echo, { text: `${i}` }));
    const page = async (query: string) => {
      const { body } = await tenant.get(`/api/jobs?${query}`);
      return [...body.data.map((job: { job_id: string }) => ids.indexOf(job.job_id)), body.total];
    };

    expect(await page('limit=3')).toEqual([0, 1, 2, 7]);
    expect(await page('limit=3&offset=3')).toEqual([3, 4, 5, 7]);
    expect(await page('limit=3&offset=6')).toEqual([6, 7]);
    expect(await page('limit=200&offset=7')).toEqual([7]);
    expect(await page('offset=2147483647')).toEqual([7]);
  });

  test.each(hostileLimits)('%s is 400 validation_error naming limit', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`/api/jobs?${query}`), 'limit');
    expectInvalid(await tenant.get('/api/jobs?limit=201'), 'limit');
  });

  test.each(hostileOffsets)('%s is 400 validation_error naming offset', async (query) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(`/api/jobs?${query}`), 'offset');
  });

  test('the filters narrow data and total alike', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    const done = await tenant.run(echo, { text: 'x' });
    const failed = await tenant.run(play, failing, { 'x-agent-id': 'other' });
    await tenant.run('staged/v2.0/versions', {});
    const filtered = async (query: string) => {
      const { body } = await tenant.get(`/api/jobs?${query}`);
      expect(body.total).toBe(body.data.length);
      return body.data.map((job: { skill_name: string }) => job.skill_name);
    };

    expect(await filtered('status=completed')).toEqual(['versions', 'echo']);
    expect(await filtered('status=failed')).toEqual(['play']);
    expect(await filtered('status=queued')).toEqual([]);
    expect(await filtered('status=active')).toEqual([]);
    expect(await filtered('status=cancelled')).toEqual([]);
    expect(await filtered('agent_id=other')).toEqual(['play']);
    expect(await filtered('agent_id=nobody')).toEqual([]);
    expect(await filtered('skill_category=staged')).toEqual(['versions', 'play']);
    expect(await filtered('skill_name=echo')).toEqual(['echo']);
    expect(await filtered('skill_version=v2.0')).toEqual(['versions']);
    expect(await filtered('trigger_type=api')).toEqual(['versions', 'play', 'echo']);
    expect(await filtered('trigger_type=scheduled')).toEqual([]);
    expect(await filtered('trigger_type=webhook')).toEqual([]);
    expect(await filtered(`conversation_id=${done.body.conversation_id}`)).toEqual(['echo']);
    expect(await filtered(`conversation_id=${randomId}`)).toEqual([]);
    expect(await filtered('conversation_id=x')).toEqual([]);
    expect(await filtered(`parent_job_id=${done.body.job_id}`)).toEqual([]);
    expect(await filtered(`parent_job_id=${randomId}`)).toEqual([]);
    expect(await filtered('parent_job_id=x')).toEqual([]);
    expect(await filtered('status=failed&agent_id=other&skill_name=play')).toEqual(['play']);
    expect(await filtered('status=failed&agent_id=default')).toEqual([]);
    expect(await filtered(`status=failed&conversation_id=${failed.body.conversation_id}`)).toEqual([
      'play',
    ]);
  });

  test('include=timing adds timestamps, duration and error; by default they are absent', async () => {
    const tenant = await newTenant(platform);
    await tenant.run(echo, { text: 'x' });
    await tenant.run(play, failing);

    const { body } = await tenant.get('/api/jobs?include=timing');

    expect(body).toMatchObject({ total: 2, limit: 50, offset: 0 });
    for (const job of body.data) {
      expect(keysOf(job)).toEqual(timedFields);
      expect((await tenant.get(`/api/jobs/${job.job_id}`)).body).toMatchObject(job);
    }
    const [failed, completed] = body.data;
    expect(failed).toMatchObject({
      status: 'failed',
      trigger_type: 'api',
      user_id: 'a test',
      attempt: 1,
      error: { code: 'skill_execution_failed', message: 'no' },
      started_at: aTimestamp,
      finished_at: aTimestamp,
      duration_ms: expect.any(Number),
    });
    expect(completed.error).toBeNull();
    for (const job of (await tenant.get('/api/jobs')).body.data) {
      expect(keysOf(job)).toEqual(listedFields);
    }
  });

  test.each(['', 'Timing', 'timing,error', 'input', 'timing&include=timing'])(
    'include=%s is 400 validation_error',
    async (value) => {
      const tenant = await newTenant(platform);

      expectInvalid(await tenant.get(`/api/jobs?include=${value}`), 'include');
    },
  );

  test('created_after and created_before are exclusive', async () => {
    const tenant = await newTenant(platform);
    const moments: string[] = [];
    for (let i = 0; i < 3; i++) {
      const jobId = await tenant.start(echo, { text: `${i}` });
      const { created_at } = (await tenant.get(`/api/jobs/${jobId}`)).body;
      moments.push(created_at);
      await waitFor(() => Date.now() > Date.parse(created_at), { describe: 'time goes on' });
    }
    const [first, second, third] = moments as [string, string, string];
    const found = async (bounds: Record<string, string>) => {
      const { body } = await tenant.get(`/api/jobs?${new URLSearchParams(bounds)}`);
      expect(body.total).toBe(body.data.length);
      return body.data.map((job: { created_at: string }) => job.created_at);
    };

    expect(await found({ created_after: first })).toEqual([third, second]);
    expect(await found({ created_before: third })).toEqual([second, first]);
    expect(await found({ created_after: first, created_before: third })).toEqual([second]);
    expect(await found({ created_after: second, created_before: second })).toEqual([]);
    expect(await found({ created_after: third, created_before: first })).toEqual([]);
    expect(await found({ created_after: '1960-01-01T00:00:00Z', status: 'failed' })).toEqual([]);
    expect(await found({ created_before: '9999-12-31T23:59:59+14:00' })).toEqual([
      third,
      second,
      first,
    ]);
    const paged = await tenant.get(
      `/api/jobs?created_after=${first}&skill_name=echo&limit=1&offset=1`,
    );
    expect(paged.body).toMatchObject({ total: 2, data: [{ created_at: second }], offset: 1 });
    const past = await tenant.get(`/api/jobs?created_after=${first}&offset=2`);
    expect(past.body).toMatchObject({ total: 2, data: [] });
    const stranger = await newTenant(platform);
    expect((await stranger.get(`/api/jobs?created_before=${third}`)).body.total).toBe(0);
  });

  test.each(['created_after', 'created_before'])('%s is a moment with a zone', async (name) => {
    const tenant = await newTenant(platform);

    for (const value of [
      ...[
        '',
        'yesterday',
        '2026-01-01',
        '2026-01-01T00:00:00',
        '1767225600000',
        '2026-02-30T00:00Z',
      ],
      ...['2026-01-01T00:00:00 01:00', '2026-01-01T25:00:00Z', 'x'.repeat(2_000)],
    ]) {
      expectInvalid(await tenant.get(`/api/jobs?${name}=${value}`), name);
    }
    const twice = `${name}=2026-01-01T00:00:00Z&${name}=2026-01-01T00:00:00Z`;
    expectInvalid(await tenant.get(`/api/jobs?${twice}`), name);
  });

  test('a filter given twice, or with a word that there is not, is refused and named', async () => {
    const tenant = await newTenant(platform);

    for (const name of [
      ...['status', 'agent_id', 'skill_category', 'skill_name', 'skill_version', 'trigger_type'],
      'conversation_id',
    ]) {
      expectInvalid(await tenant.get(`/api/jobs?${name}=api&${name}=api`), name);
      expectInvalid(await tenant.get(`/api/jobs?${name}=a%00`), name);
      expectInvalid(await tenant.get(`/api/jobs?${name}=${'x'.repeat(2_000)}`), name);
    }
    for (const query of ['status=done', 'status=', 'status=Failed', 'trigger_type=cron']) {
      expectInvalid(await tenant.get(`/api/jobs?${query}`), query.split('=')[0] as string);
    }
  });

  test('a filter is taken literally', async () => {
    const tenant = await newTenant(platform);
    await tenant.run(echo, { text: 'x' });

    for (const value of [
      "'",
      "' or 1=1 --",
      '%25',
      '_',
      '*',
      'def%',
      'DEFAULT',
      '[object Object]',
    ]) {
      const { body } = await tenant.get(`/api/jobs?agent_id=${encodeURIComponent(value)}`);
      expect(body).toMatchObject({ data: [], total: 0 });
    }
  });
});

describe('POST /api/jobs/:jobId/cancel', () => {
  test('a queued job is cancelled at once: 200 with the job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const holding = acting({ until: end.path });
    const holders = [await tenant.start(play, holding), await tenant.start(play, holding)];
    for (const id of holders) await tenant.jobIn(id, 'active');
    const jobId = await tenant.start(echo, { text: 'never' });
    expect((await tenant.get(`/api/jobs/${jobId}`)).body.status).toBe('queued');

    const { status, body } = await tenant.post(`/api/jobs/${jobId}/cancel`);

    end.open();
    expect(status).toBe(200);
    expect(keysOf(body)).toEqual(fullFields);
    expect(body).toMatchObject({
      job_id: jobId,
      status: 'cancelled',
      attempt: 0,
      output: null,
      error: { code: 'cancelled' },
      started_at: null,
      finished_at: aTimestamp,
      duration_ms: null,
    });
    const conversation = await tenant.get(`/api/conversations/${body.conversation_id}`);
    expect(conversation.body.status).toBe('failed');
    for (const id of holders) await tenant.jobIn(id, 'completed');
    expect((await tenant.get(`/api/jobs/${jobId}`)).body).toEqual(body);
  });

  test('a job that waits for its next attempt is cancelled at once', async () => {
    const slow = await startStaged({ environment: { RETRY_BACKOFF_MS: '3600000' } });
    const tenant = await newTenant(slow);
    const jobId = await tenant.start(play, acting({ fail: { message: 'not yet' } }));
    await waitFor(
      async () => {
        const { body } = await tenant.get(`/api/jobs/${jobId}`);
        return body.attempt === 1 && body.status === 'queued';
      },
      { describe: 'the first attempt has failed' },
    );

    const { status, body } = await tenant.post(`/api/jobs/${jobId}/cancel`);

    await slow.stop();
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'cancelled', attempt: 1, error: { code: 'cancelled' } });
  });

  test('an active one is asked to stop: 202 while it is being stopped, then it is cancelled', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(jobId, 'active');

    const { status, body } = await tenant.post(`/api/jobs/${jobId}/cancel`);

    // The run may have heard of it before the answer was written.
    expect([
      [202, 'active'],
      [200, 'cancelled'],
    ]).toContainEqual([status, body.status]);
    const job = await tenant.jobIn(jobId, 'cancelled');
    expect(job.body).toMatchObject({ error: { code: 'cancelled' }, output: null });
    const conversation = await tenant.get(`/api/conversations/${body.conversation_id}`);
    expect(conversation.body.status).toBe('failed');
  });

  test('one that does not listen is stopped by force after a grace, at no cost to others', async () => {
    const tenant = await newTenant(platform);
    const [begun, end, never] = [beginning(), gate(), gate()];
    const neighbour = await tenant.start(play, acting({ until: end.path }));
    const deaf = await tenant.start(play, acting(begun.step, { stubbornUntil: never.path }));
    await begun.shown();

    const { status, body } = await tenant.post(`/api/jobs/${deaf}/cancel`);

    expect({ status, state: body.status }).toEqual({ status: 202, state: 'active' });
    const cancelled = await tenant.jobIn(deaf, 'cancelled', 'failed');
    expect(cancelled.body).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
    end.open();
    const other = await tenant.jobIn(neighbour, 'completed', 'failed');
    expect(other.body).toMatchObject({ status: 'completed', attempt: 1 });
  });

  test('a cancelled job answers 200 again', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(jobId, 'active');
    await tenant.post(`/api/jobs/${jobId}/cancel`);
    const { body: job } = await tenant.jobIn(jobId, 'cancelled');

    const again = await tenant.post(`/api/jobs/${jobId}/cancel`);

    expect(again.status).toBe(200);
    expect(again.body).toEqual(job);
  });

  test('a completed or failed one is 422 job_not_cancellable and does not change', async () => {
    const tenant = await newTenant(platform);

    for (const input of [acting(), failing]) {
      const { body } = await tenant.run(play, input);

      const answer = await tenant.post(`/api/jobs/${body.job_id}/cancel`);

      expectRefusal(answer, 422, 'job_not_cancellable');
      expect((await tenant.get(`/api/jobs/${body.job_id}`)).body).toEqual(body);
    }
  });

  test('20 at once are one cancellation', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));

    const answers = await Promise.all(
      Array.from({ length: 20 }, () => tenant.post(`/api/jobs/${jobId}/cancel`)),
    );

    for (const { status } of answers) expect([200, 202]).toContain(status);
    expect((await tenant.jobIn(jobId, 'cancelled')).body.error.code).toBe('cancelled');
    const counts = await tenant.get('/api/jobs?status=cancelled');
    expect(counts.body.total).toBe(1);
  });

  test('an unknown job is 404 not_found', async () => {
    const tenant = await newTenant(platform);

    for (const id of [randomId, 'x']) {
      expectRefusal(await tenant.post(`/api/jobs/${id}/cancel`), 404, 'not_found');
    }
  });
});

describe('POST /api/jobs/:jobId/retry', () => {
  test('is for the user of the job, and refused for another one', async () => {
    const tenant = await newTenant(platform);
    const failed = async (headers: Record<string, string>) =>
      (await tenant.run(play, failing, headers)).body.job_id;
    const retry = (id: string, headers = {}) =>
      tenant.post(`/api/jobs/${id}/retry`, undefined, headers);
    const userOf = async ({ body }: Answer) =>
      (await tenant.get(`/api/jobs/${body.job_id}`)).body.user_id;
    const ada = { 'x-user-id': 'ada' };
    const ofAda = await failed(ada);

    expectRefusal(await retry(ofAda, { 'x-user-id': 'bob' }), 409, 'conflict');
    expectInvalid(await retry(ofAda, { 'x-user-id': '' }), 'x-user-id');
    expect(await userOf(await retry(ofAda, ada))).toBe('ada');
    expect(await userOf(await retry(ofAda))).toBe('ada');
    const ofNone = await failed({});
    expect(await userOf(await retry(ofNone))).toBe('a test');
    expect(await userOf(await retry(ofNone, ada))).toBe('ada');
  });

  test('of a failed job: 202 like an execution, a new job with retry_of', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    const headers = { 'x-agent-id': 'other', 'x-user-id': 'ada' };
    const { body: old } = await tenant.run(play, failing, headers);

    const answer = await tenant.post(`/api/jobs/${old.job_id}/retry`);

    expect(answer.status).toBe(202);
    expect(keysOf(answer.body)).toEqual(acceptedFields);
    expect(answer.body.status).toBe('queued');
    expect(answer.headers.get('location')).toBe(`/api/jobs/${answer.body.job_id}`);
    const { body: job } = await tenant.jobIn(answer.body.job_id, 'failed');
    expect(job).toMatchObject({
      retry_of: old.job_id,
      agent_id: 'other',
      user_id: 'ada',
      input: old.input,
      trigger_type: 'api',
    });
    expect(job.conversation_id).not.toBe(old.conversation_id);
    expect((await tenant.get(`/api/jobs/${old.job_id}`)).body).toEqual(old);
  });

  test('of a cancelled job', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.post(`/api/jobs/${jobId}/cancel`);
    await tenant.jobIn(jobId, 'cancelled');
    end.open();

    const answer = await tenant.post(`/api/jobs/${jobId}/retry`);

    expect(answer.status).toBe(202);
    const { body } = await tenant.jobIn(answer.body.job_id, 'completed');
    expect(body.retry_of).toBe(jobId);
  });

  test('of any other is 422 job_not_retryable', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const active = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(active, 'active');
    const { body: completed } = await tenant.run(play, acting());

    for (const id of [active, completed.job_id]) {
      expectRefusal(await tenant.post(`/api/jobs/${id}/retry`), 422, 'job_not_retryable');
    }
    expect((await tenant.get('/api/jobs')).body.total).toBe(2);
  });

  test('at a paused agent is 422 agent_paused, at a deleted one 404 not_found', async () => {
    const tenant = await newTenant(platform);
    const { body: old } = await tenant.run(play, failing);

    await tenant.put('/api/agents/default', { status: 'paused' });
    const paused = await tenant.post(`/api/jobs/${old.job_id}/retry`);
    await tenant.delete('/api/agents/default');
    const deleted = await tenant.post(`/api/jobs/${old.job_id}/retry`);

    expectRefusal(paused, 422, 'agent_paused');
    expectRefusal(deleted, 404, 'not_found');
  });

  test('an unknown job is 404 not_found', async () => {
    const tenant = await newTenant(platform);

    for (const id of [randomId, 'x']) {
      expectRefusal(await tenant.post(`/api/jobs/${id}/retry`), 404, 'not_found');
    }
  });
});

test('ids sort by creation and cannot be guessed from one another', async () => {
  const tenant = await newTenant(platform);
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) ids.push(await tenant.start(echo, { text: 'x' }));

  expect([...ids].sort()).toEqual(ids);
  // What follows the time and the counter is random.
  expect(new Set(ids.map((id) => id.slice(-12))).size).toBe(30);
});

embeddedTest(
  'ended jobs are deleted RETENTION_DAYS after they were accepted, with their conversations',
  async () => {
    const clock = manualClock(new Date().toISOString());
    const environment = { RETENTION_DAYS: '1', DATA_DIR: dataDirectory() };
    const first = await startStaged({ clock, environment });
    const tenant = await newTenant(first);
    const { body } = await tenant.run(echo, { text: 'x' });
    await first.stop();

    clock.advance(25 * 60 * 60 * 1000);
    const second = await startStaged({ clock, environment });
    const gone = await waitFor(
      async () => {
        const answer = await second.request('GET', `/api/jobs/${body.job_id}`, { key: tenant.key });
        return answer.status === 404 ? answer : null;
      },
      { describe: 'the job is deleted' },
    );
    const conversation = await second.request(
      'GET',
      `/api/conversations/${body.conversation_id}/messages`,
      { key: tenant.key },
    );
    const list = await second.request('GET', '/api/jobs', { key: tenant.key });
    await second.stop();

    expectRefusal(gone, 404, 'not_found');
    expectRefusal(conversation, 404, 'not_found');
    expect(list.body).toMatchObject({ data: [], total: 0 });
  },
);
