import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noTokenSums } from '../../src/adapters/http/schemas.ts';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { embeddedTest, type Platform } from '../support/platform.ts';
import { acting, dataDirectory, gate, play, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';

/** The fields of the 202, and no others. */
const accepted = {
  job_id: anId,
  status: 'queued',
  conversation_id: anId,
  agent_id: 'default',
  skill_category: 'util',
  skill_name: 'echo',
  skill_version: 'v1.0',
  created_at: aTimestamp,
};

describe('POST /api/{category}/{version}/{skill-name}', () => {
  test('answers 202 with the documented fields and Location', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.post(`/api/${echo}`, { text: 'hello' });

    expect(status).toBe(202);
    expect(body).toEqual(accepted);
    expect(headers.get('location')).toBe(`/api/jobs/${body.job_id}`);
    expect(headers.get('idempotent-replayed')).toBeNull();
    expect(headers.get('preference-applied')).toBeNull();
    const job = await tenant.jobIn(body.job_id, 'completed');
    expect(job.body).toMatchObject({ ...body, status: 'completed', output: { text: 'hello' } });
  });

  test('the whole body is the input', async () => {
    const tenant = await newTenant(platform);
    const input = { agent_id: 'x', input: { a: 1 }, skill_name: 'y', __idempotency: true };

    const { body } = await tenant.run('staged/v1.0/any', input);

    expect(body).toMatchObject({ status: 'completed', agent_id: 'default', input, output: input });
  });

  test('text of every kind comes back as it was sent', async () => {
    const tenant = await newTenant(platform);

    for (const text of [
      '',
      'Zürich 東京 🏔️ مرحبا',
      ' \r\n\t',
      '\u2028\ufeff\uffff',
      '"\\/',
      '\u0001',
    ]) {
      const { body } = await tenant.run(echo, { text });

      expect(body).toMatchObject({ input: { text }, output: { text } });
    }
  });

  test('an unknown or inactive skill is 404 skill_not_found', async () => {
    const tenant = await newTenant(platform);

    for (const path of [
      ...['nope/v1.0/echo', 'util/v1.0/nope', 'util/v2.0/echo', 'util/latest/echo', 'util/v1/echo'],
      ...['util/v1.0/ECHO', 'Util/v1.0/echo', 'util%20/v1.0/echo', '%2A/v1.0/echo', '_/_/_'],
    ]) {
      expectRefusal(await tenant.post(`/api/${path}`, { text: 'x' }), 404, 'skill_not_found');
    }
  });

  test("a path of the platform's own is no skill: 404 or 405, never a run", async () => {
    const tenant = await newTenant(platform);

    for (const category of [
      ...['skills', 'jobs', 'agents', 'conversations', 'webhooks', 'scheduled-jobs'],
      ...['agent-webhooks', 'agent-triggers', 'admin', 'health', 'metrics'],
    ]) {
      const { status, body } = await tenant.post(`/api/${category}/v1.0/echo`, {});
      expect([404, 405]).toContain(status);
      expect(['not_found', 'method_not_allowed']).toContain(body.error);
    }
  });
});

describe("a skill's input is judged by its schema alone", () => {
  test('an invalid input is 400 validation_error with details, and no job is queued', async () => {
    const tenant = await newTenant(platform);
    const order = (input: unknown) => tenant.post('/api/staged/v1.0/order', input);
    const good = { item: { name: 'tea' }, count: 1 };
    expect((await order(good)).status).toBe(202);

    expectInvalid(await order({}), 'item');
    expectInvalid(await order({ ...good, count: undefined }), 'count');
    expectInvalid(await order({ ...good, count: 0 }), 'count');
    expectInvalid(await order({ ...good, count: '1' }), 'count');
    expectInvalid(await order({ ...good, count: null }), 'count');
    expectInvalid(await order({ ...good, item: {} }), 'item.name');
    expectInvalid(await order({ ...good, item: { name: 1 } }), 'item.name');
    expectInvalid(await order({ ...good, tags: ['a', 2] }), 'tags.1');
    expectInvalid(await order({ ...good, size: 'xl' }), 'size');
    expectInvalid(await order({ ...good, colour: 'red' }), 'colour');
    for (const input of ['[]', 'null', '"x"', '1', 'true']) {
      expectInvalid(await order(input), 'body');
    }

    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
    expect((await tenant.get('/api/conversations')).headers.get('x-total-count')).toBe('1');
  });

  test('a schema that asks for an array or a string takes such a body', async () => {
    const tenant = await newTenant(platform);

    const sum = await tenant.run('staged/v1.0/sum', [1, 2, 39]);
    expect(sum.body).toMatchObject({ status: 'completed', input: [1, 2, 39], output: 42 });
    const shout = await tenant.run('staged/v1.0/shout', '"hello"');
    expect(shout.body).toMatchObject({ status: 'completed', input: 'hello', output: 'HELLO' });
    expectInvalid(await tenant.post('/api/staged/v1.0/sum', { a: 1 }), 'body');
    expectInvalid(await tenant.post('/api/staged/v1.0/sum', [1, 'x']), '1');
    expectInvalid(await tenant.post('/api/staged/v1.0/shout', '""'), 'body');
  });

  test('an empty schema accepts any JSON value', async () => {
    const tenant = await newTenant(platform);

    for (const input of ['null', 'false', '0', '""', '[]', '{}', '[null]', '1.5e-7']) {
      const { body } = await tenant.run('staged/v1.0/any', input);
      expect(body).toMatchObject({ status: 'completed', input: JSON.parse(input) });
      expect(body.output).toEqual(JSON.parse(input));
    }
  });

  test('no body at all is 400', async () => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.post(`/api/${echo}`), 'body');
    expectInvalid(await tenant.post(`/api/${echo}`, ''), 'body');
    expectInvalid(await tenant.post('/api/staged/v1.0/any'), 'body');
  });
});

describe('x-priority', () => {
  test('is part of what an Idempotency-Key stands for', async () => {
    const tenant = await newTenant(platform);
    const send = (headers: Record<string, string>) =>
      tenant.post(`/api/${echo}`, { text: 'x' }, { 'idempotency-key': 'one', ...headers });
    const first = await send({ 'x-priority': 'high' });

    expect((await send({ 'x-priority': 'high' })).body.job_id).toBe(first.body.job_id);
    expectRefusal(await send({ 'x-priority': 'low' }), 422, 'idempotency_key_reused');
    expectRefusal(await send({}), 422, 'idempotency_key_reused');
  });

  test('is shown by the job, its retry and its child jobs', async () => {
    const tenant = await newTenant(platform);
    const high = { 'x-priority': 'high', prefer: 'wait=30' };

    const failing = await tenant.post(
      `/api/${play}`,
      acting({ fail: { message: 'no', retryable: false } }),
      high,
    );
    const retry = await tenant.post(`/api/jobs/${failing.body.job_id}/retry`);
    const family = await tenant.post(
      '/api/staged/v1.0/family',
      { jobs: [{ skill: echo, input: { text: 'child' } }] },
      { ...high, 'x-priority': 'low' },
    );

    const priorityOf = async (id: string) => (await tenant.get(`/api/jobs/${id}`)).body.priority;
    expect(failing.body).toMatchObject({ status: 'failed', priority: 'high' });
    expect(await priorityOf(retry.body.job_id)).toBe('high');
    expect(family.body).toMatchObject({ status: 'completed', priority: 'low' });
    const { body } = await tenant.get(`/api/jobs?parent_job_id=${family.body.job_id}`);
    expect(await priorityOf(body.data[0].job_id)).toBe('low');
  });

  test('of any other value is 400, and so is a second one', async () => {
    const tenant = await newTenant(platform);

    for (const value of ['', 'High', 'urgent', '0', 'high, low', 'x'.repeat(5_000)]) {
      const response = await tenant.post(`/api/${echo}`, { text: 'x' }, { 'x-priority': value });
      expectInvalid(response, 'x-priority');
    }
    const { body } = await tenant.get('/api/jobs');
    expect(body.total).toBe(0);
  });
});

describe('Prefer: wait=N', () => {
  const fullJob = {
    ...accepted,
    status: 'completed',
    input: { text: 'x' },
    output: { text: 'x' },
    error: null,
    attempt: 1,
    max_attempts: 3,
    trigger_type: 'api',
    user_id: 'a test',
    queue: 'skill-execution',
    priority: 'normal',
    run_at: aTimestamp,
    expires_at: null,
    batch_id: null,
    waiting_for: null,
    job_key: null,
    replaced_by: null,
    delivered_to: null,
    started_at: aTimestamp,
    finished_at: aTimestamp,
    duration_ms: expect.any(Number),
    retry_of: null,
    is_resumed: false,
    agent_overrides: null,
    instruction_values: null,
    agent_version: null,
    erased_at: null,
    is_trial: false,
    progress: null,
    ...noTokenSums,
    parent_job_id: null,
  };

  test('with an end in time: 200, the full job, Preference-Applied and Location', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.post(
      `/api/${echo}`,
      { text: 'x' },
      { prefer: 'wait=30' },
    );

    expect(status).toBe(200);
    expect(body).toEqual(fullJob);
    expect(headers.get('preference-applied')).toBe('wait=30');
    expect(headers.get('location')).toBe(`/api/jobs/${body.job_id}`);
  });

  test('a failed or cancelled job is an end too', async () => {
    const tenant = await newTenant(platform);
    const end = gate();

    const failed = await tenant.run(play, acting({ fail: { message: 'no', retryable: false } }));
    expect(failed.status).toBe(200);
    expect(failed.body).toMatchObject({ status: 'failed' });
    const waiting = tenant.run(play, acting({ until: end.path }));
    const active = await waitFor(
      async () => (await tenant.get('/api/jobs?status=active')).body.data[0],
      { describe: 'the job is active' },
    );
    await tenant.post(`/api/jobs/${active.job_id}/cancel`);
    const cancelled = await waiting;
    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toMatchObject({ job_id: active.job_id, status: 'cancelled' });
  });

  test('with no end in time: 202 as without it, with the state that it is in', async () => {
    const tenant = await newTenant(platform);
    const end = gate();

    const answer = await tenant.post(`/api/${play}`, acting({ until: end.path }), {
      prefer: 'wait=1',
    });

    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      ...accepted,
      status: 'active',
      skill_category: 'staged',
      skill_name: 'play',
    });
    expect(answer.headers.get('preference-applied')).toBeNull();
  });

  test.each([
    ['wait=5', 'wait=5'],
    ['WAIT=5', 'wait=5'],
    ['wait="5"', 'wait=5'],
    ['wait = 5', 'wait=5'],
    ['wait=5; foo=bar', 'wait=5'],
    ['respond-async, wait=5', 'wait=5'],
    ['foo="bar, wait=9", wait=5', 'wait=5'],
    ['wait=5, wait=9', 'wait=5'],
    ['wait=61', 'wait=60'],
    ['wait=3600', 'wait=60'],
    ['wait=99999999999999999999', 'wait=60'],
  ])('is read as RFC 7240 says, N to 60: %s', async (prefer, applied) => {
    const tenant = await newTenant(platform);

    const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, { prefer });

    expect(answer.status).toBe(200);
    expect(answer.headers.get('preference-applied')).toBe(applied);
  });

  test.each([
    'wait',
    'wait=',
    'wait=-1',
    'wait=1.5',
    'wait=x',
    'wait=0',
    'await=5',
    'x="wait=5"',
    '',
  ])('that does not parse, or asks for no wait, is ignored: %j', async (prefer) => {
    const tenant = await newTenant(platform);

    const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, { prefer });

    expect(answer.status).toBe(202);
    expect(answer.headers.get('preference-applied')).toBeNull();
  });
});

describe('x-agent-id', () => {
  test('names the agent that works', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'support' });

    const { body } = await tenant.run(echo, { text: 'x' }, { 'x-agent-id': 'support' });

    expect(body.agent_id).toBe('support');
    const conversation = await tenant.get(`/api/conversations/${body.conversation_id}`);
    expect(conversation.body.agent_id).toBe('support');
  });

  test('of an unknown agent is 404 not_found', async () => {
    const tenant = await newTenant(platform);

    for (const agent of ['nobody', 'Default', '', ' ', 'a/b', '*', 'é', 'x'.repeat(4_000), '%00']) {
      const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, { 'x-agent-id': agent });
      expectRefusal(answer, 404, 'not_found');
    }
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('of a paused agent is 422 agent_paused, and nothing is queued', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'tired', status: 'paused' });

    const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, { 'x-agent-id': 'tired' });

    expectRefusal(answer, 422, 'agent_paused');
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
    expect((await tenant.post(`/api/${echo}`, { text: 'x' })).status).toBe(202);
  });

  test('a pause holds at once, and so does its end', async () => {
    const tenant = await newTenant(platform);
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) {
      await tenant.put('/api/agents/default', { status: i % 2 === 0 ? 'paused' : 'active' });
      statuses.push((await tenant.post(`/api/${echo}`, { text: 'x' })).status);
    }

    expect(statuses).toEqual([422, 202, 422, 202, 422]);
  });

  test('a job that was accepted before the pause still runs', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const jobId = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(jobId, 'active');
    await tenant.put('/api/agents/default', { status: 'paused' });

    end.open();

    expect((await tenant.jobIn(jobId, 'completed', 'failed')).body.status).toBe('completed');
  });

  test('no default agent, no work without naming one', async () => {
    const tenant = await newTenant(platform);
    await tenant.delete('/api/agents/default');

    expectRefusal(await tenant.post(`/api/${echo}`, { text: 'x' }), 404, 'not_found');
  });
});

describe('x-user-id', () => {
  test("is the key's client_name by default", async () => {
    const tenant = await newTenant(platform, { client_name: 'nightly reports' });

    const { body } = await tenant.run(echo, { text: 'x' });

    expect(body.user_id).toBe('nightly reports');
    const conversation = await tenant.get(`/api/conversations/${body.conversation_id}`);
    expect(conversation.body.user_id).toBe('nightly reports');
  });

  test('names the user who asked, in UTF-8 too', async () => {
    const tenant = await newTenant(platform);
    const utf8 = (text: string) => Buffer.from(text).toString('latin1');
    const names = ['u-17', 'Ada Lovelace', 'Zoë', '東京', '🏔'.repeat(200)];

    for (const name of names) {
      const { body } = await tenant.run(echo, { text: 'x' }, { 'x-user-id': utf8(name) });
      expect(body.user_id).toBe(name);
    }
    for (const name of names) {
      const query = `user_id=${encodeURIComponent(name)}`;
      expect((await tenant.get(`/api/conversations?${query}`)).body).toMatchObject([
        { user_id: name },
      ]);
    }
  });

  test('that is empty or longer than 200 characters is 400', async () => {
    const tenant = await newTenant(platform);

    for (const user of ['', ' ', 'x'.repeat(201)]) {
      const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, { 'x-user-id': user });
      expectInvalid(answer, 'x-user-id');
    }
  });
});

describe('Idempotency-Key', () => {
  const withKey = (key: string) => ({ 'idempotency-key': key });

  test('the same key and body get the first answer again, marked as replayed', async () => {
    const tenant = await newTenant(platform);
    const first = await tenant.post(`/api/${echo}`, { text: 'x' }, withKey('one'));
    await tenant.jobIn(first.body.job_id, 'completed');

    const second = await tenant.post(`/api/${echo}`, { text: 'x' }, withKey('one'));

    expect(second.status).toBe(202);
    expect(second.body).toEqual(first.body);
    expect(second.headers.get('location')).toBe(first.headers.get('location'));
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  });

  test('a replay may wait for the job of the first', async () => {
    const tenant = await newTenant(platform);
    const first = await tenant.post(`/api/${echo}`, { text: 'x' }, withKey('one'));

    const headers = { ...withKey('one'), prefer: 'wait=30' };
    const second = await tenant.post(`/api/${echo}`, { text: 'x' }, headers);

    expect(second.status).toBe(200);
    expect(second.body).toMatchObject({ job_id: first.body.job_id, status: 'completed' });
    expect(second.headers.get('idempotent-replayed')).toBe('true');
  });

  test('"same body" means equal as JSON values', async () => {
    const tenant = await newTenant(platform);
    const any = (body: string) => tenant.post('/api/staged/v1.0/any', body, withKey('one'));
    const first = await any('{"a":1,"b":[1.0,{"c":"é","d":null}]}');

    const second = await any(' { "b" : [ 1 , { "d":null, "c":"\\u00e9"} ], "a":1e0 }');

    expect(second.headers.get('idempotent-replayed')).toBe('true');
    expect(second.body).toEqual(first.body);
    for (const other of [
      '{"a":1,"b":[{"c":"é","d":null},1.0]}',
      '{"a":"1","b":[1.0,{"c":"é","d":null}]}',
      '{"a":1,"b":[1.0,{"c":"é"}]}',
      '[]',
    ]) {
      expectRefusal(await any(other), 422, 'idempotency_key_reused');
    }
  });

  test('another body, skill or agent is 422 idempotency_key_reused', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    await tenant.start('staged/v1.0/any', {}, withKey('one'));

    const body = await tenant.post('/api/staged/v1.0/any', { a: 1 }, withKey('one'));
    expectRefusal(body, 422, 'idempotency_key_reused');
    const skill = await tenant.post('/api/staged/v2.0/versions', {}, withKey('one'));
    expectRefusal(skill, 422, 'idempotency_key_reused');
    const agent = { ...withKey('one'), 'x-agent-id': 'other' };
    const other = await tenant.post('/api/staged/v1.0/any', {}, agent);
    expectRefusal(other, 422, 'idempotency_key_reused');
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  });

  test('stands for the user, too: another one gets no answer of theirs', async () => {
    const tenant = await newTenant(platform);
    const send = (headers: Record<string, string>) =>
      tenant.post(`/api/${echo}`, { text: 'x' }, { ...withKey('one'), ...headers });
    const ofAda = await send({ 'x-user-id': 'ada', 'x-user-name': 'Ada' });

    const repeated = await send({ 'x-user-id': 'ada', 'x-user-name': 'Ada' });
    expect(repeated.body.job_id).toBe(ofAda.body.job_id);
    expectRefusal(await send({ 'x-user-id': 'bob' }), 422, 'idempotency_key_reused');
    expectRefusal(await send({ 'x-user-id': 'ada' }), 422, 'idempotency_key_reused');
    expectRefusal(await send({}), 422, 'idempotency_key_reused');
  });

  test('is compared as it was sent, and not decoded as names are', async () => {
    const tenant = await newTenant(platform);
    const utf8 = Buffer.from('k-é').toString('latin1');
    const send = (key: string) => tenant.post(`/api/${echo}`, { text: 'x' }, withKey(key));

    const [first, latin1, again] = [await send(utf8), await send('k-é'), await send(utf8)];

    expect(latin1.body.job_id).not.toBe(first.body.job_id);
    expect(again.body.job_id).toBe(first.body.job_id);
  });

  test('stands for the concurrency key, too', async () => {
    const tenant = await newTenant(platform);
    const send = (key: string) =>
      tenant.post(`/api/${echo}`, { text: 'x' }, { ...withKey('one'), 'x-concurrency-key': key });
    const first = await send('a');

    expect((await send('a')).body.job_id).toBe(first.body.job_id);
    expectRefusal(await send('b'), 422, 'idempotency_key_reused');
  });

  test('50 at once make one job', async () => {
    const tenant = await newTenant(platform);

    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        tenant.post(`/api/${echo}`, { text: 'x' }, withKey('fifty')),
      ),
    );

    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(202));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    const replayed = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true');
    expect(replayed).toHaveLength(49);
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
    expect((await tenant.get('/api/conversations')).headers.get('x-total-count')).toBe('1');
  });

  test('50 at once with two bodies make one job, and the other body is refused', async () => {
    const tenant = await newTenant(platform);

    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        tenant.post(`/api/${echo}`, { text: `${i % 2}` }, withKey('two')),
      ),
    );

    expect(answers.filter(({ status }) => status === 202)).toHaveLength(25);
    expect(answers.filter(({ body }) => body.error === 'idempotency_key_reused')).toHaveLength(25);
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  });

  test('a refused request is not remembered', async () => {
    const tenant = await newTenant(platform);
    expectInvalid(await tenant.post(`/api/${echo}`, { text: 1 }, withKey('one')), 'text');
    await tenant.put('/api/agents/default', { status: 'paused' });
    const paused = await tenant.post(`/api/${echo}`, { text: 'y' }, withKey('one'));
    expectRefusal(paused, 422, 'agent_paused');
    await tenant.put('/api/agents/default', { status: 'active' });

    const good = await tenant.post(`/api/${echo}`, { text: 'x' }, withKey('one'));

    expect(good.status).toBe(202);
    expect(good.headers.get('idempotent-replayed')).toBeNull();
  });

  test('has 1 to 255 characters', async () => {
    const tenant = await newTenant(platform);

    for (const key of ['', ' ', 'x'.repeat(256)]) {
      const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, withKey(key));
      expectInvalid(answer, 'idempotency-key');
    }
    for (const key of ['x', 'x'.repeat(255), '"quoted"', 'a, b', '{}']) {
      expect((await tenant.post(`/api/${echo}`, { text: 'x' }, withKey(key))).status).toBe(202);
    }
    expect((await tenant.get('/api/jobs')).body.total).toBe(5);
  });

  embeddedTest('is remembered for 24 hours, over a restart', async () => {
    const clock = manualClock();
    const environment = { DATA_DIR: dataDirectory() };
    const first = await startStaged({ clock, environment });
    const tenant = await newTenant(first);
    const post = (on: Platform) =>
      on.request('POST', `/api/${echo}`, {
        key: tenant.key,
        headers: withKey('day'),
        body: { text: 'x' },
      });
    const accepted = await post(first);
    await first.stop();
    const second = await startStaged({ clock, environment });

    clock.advance(24 * 60 * 60 * 1000 - 1);
    const within = await post(second);
    clock.advance(2);
    const after = await post(second);

    await second.stop();
    expect(within.body).toEqual(accepted.body);
    expect(after.status).toBe(202);
    expect(after.body.job_id).not.toBe(accepted.body.job_id);
    expect(after.headers.get('idempotent-replayed')).toBeNull();
  });
});

describe('a run', () => {
  test('that fails twice and then succeeds is completed, with attempt 3', async () => {
    const tenant = await newTenant(platform);
    const fail = [{ fail: { message: 'not yet' } }];

    const { body } = await tenant.run(play, { attempts: [fail, fail, []], output: 'at last' });

    expect(body).toMatchObject({
      status: 'completed',
      attempt: 3,
      max_attempts: 3,
      output: 'at last',
      error: null,
    });
  });

  test('that always fails has exactly 3 attempts, and skill_execution_failed', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run(play, acting({ fail: { message: 'never' } }));

    expect(body).toMatchObject({
      status: 'failed',
      attempt: 3,
      output: null,
      error: { code: 'skill_execution_failed', message: 'never' },
    });
  });

  test('whose error is marked as not retryable has one', async () => {
    const tenant = await newTenant(platform);
    const fail = { message: 'no key', code: 'missing_credentials', retryable: false };

    const { body } = await tenant.run(play, acting({ fail }));

    expect(body).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'missing_credentials', message: 'no key' },
    });
  });

  test('whose output breaks output_schema fails without retry, with output_invalid', async () => {
    const tenant = await newTenant(platform);

    const good = await tenant.run('staged/v1.0/strict', '42');
    const bad = await tenant.run('staged/v1.0/strict', '"x"');

    expect(good.body).toMatchObject({ status: 'completed', output: 42 });
    expect(bad.body).toMatchObject({
      status: 'failed',
      attempt: 1,
      output: null,
      error: { code: 'output_invalid' },
    });
  });

  test('that takes longer than its timeout is tried again, and fails with skill_timeout', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run('staged/v1.0/hasty', {});

    expect(body).toMatchObject({
      status: 'failed',
      attempt: 2,
      max_attempts: 2,
      error: { code: 'skill_timeout' },
    });
  });

  test('may report upstream_unavailable, and no code that the platform keeps for itself', async () => {
    const tenant = await newTenant(platform);
    const failing = async (code: string) => {
      const { body } = await tenant.run(
        play,
        acting({ fail: { message: 'x', code, retryable: false } }),
      );
      return body.error.code;
    };

    expect(await failing('upstream_unavailable')).toBe('upstream_unavailable');
    expect(await failing('worker_lost')).toBe('skill_execution_failed');
    expect(await failing('cancelled')).toBe('skill_execution_failed');
    expect(await failing('nonsense')).toBe('skill_execution_failed');
  });

  test('while it waits for its next attempt it is queued, with run_at ahead and the error', async () => {
    const slow = await startStaged({ environment: { RETRY_BACKOFF_MS: '3600000' } });
    const tenant = await newTenant(slow);
    const jobId = await tenant.start(play, acting({ fail: { message: 'not yet' } }));

    const body = await waitFor(
      async () => {
        const { body: job } = await tenant.get(`/api/jobs/${jobId}`);
        return job.attempt === 1 && job.status === 'queued' ? job : null;
      },
      { describe: 'the first attempt has failed' },
    );

    await slow.stop();
    expect(body).toMatchObject({
      status: 'queued',
      attempt: 1,
      finished_at: null,
      duration_ms: null,
      error: { code: 'skill_execution_failed', message: 'not yet' },
    });
    const wait = Date.parse(body.run_at) - Date.parse(body.started_at);
    expect(wait).toBeGreaterThan(3_600_000 * 0.75);
    expect(wait).toBeLessThan(3_600_000 * 1.3);
  });

  test('1,000 accepted as fast as can be all end', async () => {
    const tenant = await newTenant(platform);
    const post = async () => {
      for (let i = 0; i < 50; i++) await tenant.start(echo, { text: 'x' });
    };

    await Promise.all(Array.from({ length: 20 }, post));

    await waitFor(
      async () => (await tenant.get('/api/jobs?status=completed&limit=1')).body.total === 1_000,
      { describe: 'all jobs are completed', deadlineMs: 20_000, everyMs: 50 },
    );
    expect((await tenant.get('/api/jobs?limit=1')).body.total).toBe(1_000);
  });
});
