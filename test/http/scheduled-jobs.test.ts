import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const clock = manualClock('2026-01-01T00:00:30.500Z');
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const path = '/api/scheduled-jobs';
const randomId = '0198c0de-0000-7000-8000-000000000000';
const echo = {
  agent_id: 'default',
  skill_category: 'util',
  skill_name: 'echo',
  cron_expression: '0 9 * * MON-FRI',
  input: { text: 'x' },
};
const any = { ...echo, skill_category: 'staged', skill_name: 'any', input: {} };
const vault = { ...any, skill_name: 'vault' };

/** Creates one; what its creation answered. */
async function made(tenant: Tenant, fields: Record<string, unknown> = {}) {
  const { status, body, text } = await tenant.post(path, { ...echo, ...fields });
  if (status !== 201) throw new Error(text);
  return body;
}

describe('POST /api/scheduled-jobs', () => {
  test('answers 201 with exactly the documented fields, and Location', async () => {
    const tenant = await newTenant(platform);

    const { status, body, headers } = await tenant.post(path, {
      ...echo,
      skill_version: 'v1.0',
      enabled: true,
    });

    expect(status).toBe(201);
    expect(body).toEqual({
      ...echo,
      id: anId,
      skill_version: 'v1.0',
      enabled: true,
      last_run_at: null,
      last_run_status: null,
      next_run_at: '2026-01-01T09:00:00.000Z',
      created_at: aTimestamp,
      updated_at: aTimestamp,
    });
    expect(headers.get('location')).toBe(`${path}/${body.id}`);
    expect((await tenant.get(`${path}/${body.id}`)).body).toEqual({
      ...body,
      last_run_job_id: null,
    });
  });

  test('the priority is shown only while it is set', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.post(path, { ...echo, priority: 'high' });
    expect(body.priority).toBe('high');

    const cleared = await tenant.put(`${path}/${body.id}`, { priority: null });
    const listed = await tenant.get(path);

    for (const shown of [cleared.body, listed.body[0]])
      expect(shown).not.toHaveProperty('priority');
  });

  test('the version defaults to v1.0, the input to {}, enabled to true', async () => {
    const tenant = await newTenant(platform);
    const { input: _, ...required } = any;

    const { body } = await tenant.post(path, required);

    expect(body).toMatchObject({ skill_version: 'v1.0', input: {}, enabled: true });
  });

  test.each([
    ['* * * * *', '2026-01-01T00:01:00.000Z'],
    ['0 0 13 * 5', '2026-01-02T00:00:00.000Z'],
    ['0 0 */10 * 5', '2026-05-01T00:00:00.000Z'],
    ['0 0 29 2 *', '2028-02-29T00:00:00.000Z'],
    ['0 0 29 2 */7', '2032-02-29T00:00:00.000Z'],
    ['  15\t10 *  jan  SUN ', '2026-01-04T10:15:00.000Z'],
  ])('%j is shown as it was given, and runs next at %s', async (cron_expression, next_run_at) => {
    const tenant = await newTenant(platform);

    expect(await made(tenant, { cron_expression })).toMatchObject({ cron_expression, next_run_at });
  });

  test.each([
    ...['', ' ', '* * * *', '* * * * * *', '@daily', '60 * * * *', '5/15 * * * *', '*/0 * * * *'],
    ...['* * * * 8', '* * * * FRI-MON', '* * * * MONDAY', '* * L * *', '0 0 30 2 *', '5-1 * * * *'],
    ...[`*${' '.repeat(249)}* * * *`, 'x'.repeat(500_000), 1, true, [], {}, null],
  ])('the cron expression %j is 400 validation_error', async (cron_expression) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.post(path, { ...echo, cron_expression }), 'cron_expression');
    const { id } = await made(tenant);
    expectInvalid(await tenant.put(`${path}/${id}`, { cron_expression }), 'cron_expression');
  });

  const wrong: [string, unknown[]][] = [
    ['agent_id', ['', 1, null, ['default'], {}, 'x'.repeat(201), 'x'.repeat(900_000)]],
    ['skill_category', ['', 'Util', 'a b', 1, null, [], 'x'.repeat(64)]],
    ['skill_name', ['', 'Echo', 'echo_two', '-echo', 'a--b', 1, null, 'x'.repeat(65)]],
    [
      'skill_version',
      ['', '1.0', 'v1', 'V1.0', 'v01.0', 'v1.0.0', 1, null, `v1.${'1'.repeat(40)}`],
    ],
    ['input', ['{}', 1, null, [], true]],
    ['enabled', ['true', 1, 0, null, {}]],
  ];
  test.each(wrong)('%s of a wrong type or form is refused and named', async (field, values) => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);

    for (const value of values) {
      expectInvalid(await tenant.post(path, { ...any, [field]: value }), field);
      expectInvalid(await tenant.put(`${path}/${id}`, { [field]: value }), field);
    }
    expect((await tenant.get(path)).body).toHaveLength(1);
  });

  test.each(['agent_id', 'skill_category', 'skill_name', 'cron_expression'])(
    'without %s is 400 validation_error',
    async (field) => {
      const tenant = await newTenant(platform);
      const { [field as keyof typeof echo]: _, ...rest } = echo;

      expectInvalid(await tenant.post(path, rest), field);
    },
  );

  test.each([
    ...['id', 'organization_id', 'api_key_id', 'next_run_at', 'last_run_status', 'created_at'],
    ...['updated_at', 'foo', 'Enabled', 'toString'],
  ])('an unknown field is refused and named: %s', async (field) => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);

    expectInvalid(await tenant.post(path, { ...any, [field]: 'x' }), field);
    expectInvalid(await tenant.put(`${path}/${id}`, { [field]: 'x' }), field);
  });

  test('a body that is no object, or not JSON, is refused', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);

    for (const body of [undefined, '', '[]', 'null', '"x"', '1', '{']) {
      expectRefusal(await tenant.post(path, body), 400, 'validation_error');
      expectRefusal(await tenant.put(`${path}/${id}`, body), 400, 'validation_error');
    }
    const text = { 'content-type': 'text/plain' };
    expectRefusal(await tenant.post(path, 'x', text), 415, 'unsupported_media_type');
    const large = { ...any, input: { text: 'x'.repeat(1024 * 1024) } };
    expectRefusal(await tenant.post(path, large), 413, 'payload_too_large');
  });

  test('an input may be as large as a body, and keys that would pollute prototypes are refused', async () => {
    const tenant = await newTenant(platform);
    const input = { text: '🕐'.repeat(200_000), nested: [[{ deep: null }]], '': 0 };

    const { id } = await made(tenant, { ...any, input });

    expect((await tenant.get(`${path}/${id}`)).body.input).toEqual(input);
    for (const hostile of [
      '{"__proto__":{"x":1}}',
      '{"\\u005f_proto__":{"x":1}}',
      '{"a":"\\u0000"}',
    ]) {
      const body = JSON.stringify({ ...any, input: 0 }).replace('"input":0', `"input":${hostile}`);
      expectRefusal(await tenant.post(path, body), 400, 'validation_error');
    }
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  test('an unknown agent is 404 not_found, before an unknown skill is 404 skill_not_found', async () => {
    const tenant = await newTenant(platform);
    const unknownAgent = { agent_id: 'nobody' };
    const unknown = { skill_name: 'no-such-skill' };

    for (const fields of [
      unknownAgent,
      { ...unknownAgent, ...unknown },
      { agent_id: 'Not A Slug' },
    ]) {
      expectRefusal(await tenant.post(path, { ...echo, ...fields }), 404, 'not_found');
    }
    for (const fields of [unknown, { skill_version: 'v9.9' }, { skill_category: 'no-such' }]) {
      expectRefusal(await tenant.post(path, { ...echo, ...fields }), 404, 'skill_not_found');
    }
  });

  test('is judged in this order: agent, skill, scope, cron expression, input, whether it is a second', async () => {
    const tenant = await newTenant(platform);
    const { organization } = tenant;
    const { id } = await made(tenant, { cron_expression: '1 2 3 4 5' });
    await made(tenant);
    const narrow = await newTenant(platform, {
      organization_id: organization,
      scopes: ['util', 'utilities'],
    });
    // From what is judged last to what is judged first; each is refused for the newest of them.
    const wrongs: [object, number, string][] = [
      [{}, 409, 'conflict'],
      [{ input: {} }, 400, 'validation_error'],
      [{ cron_expression: 'never' }, 400, 'validation_error'],
      [{ skill_category: 'staged', skill_name: 'vault' }, 403, 'insufficient_scope'],
      [{ skill_name: 'no-such-skill' }, 404, 'skill_not_found'],
      [{ agent_id: 'nobody' }, 404, 'not_found'],
    ];

    let body: Record<string, unknown> = { ...echo };
    for (const [wrong, status, code] of wrongs) {
      body = { ...body, ...wrong };
      for (const answer of [
        await narrow.post(path, body),
        await narrow.put(`${path}/${id}`, body),
      ]) {
        expectRefusal(answer, status, code);
        if ('cron_expression' in wrong) expectInvalid(answer, 'cron_expression');
        if ('input' in wrong) expectInvalid(answer, 'input.text');
      }
    }
    expectInvalid(await narrow.post(path, { ...body, cron_expression: 1 }), 'cron_expression');
  });

  test("without the skill's scopes is 403 insufficient_scope, before its input is judged", async () => {
    const tenant = await newTenant(platform, { scopes: ['staged', 'utilities'] });

    for (const fields of [echo, { ...echo, input: {} }, vault]) {
      expectRefusal(await tenant.post(path, fields), 403, 'insufficient_scope');
    }
    expect((await tenant.post(path, any)).status).toBe(201);
  });

  test("an input that breaks the skill's schema is 400 validation_error", async () => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.post(path, { ...echo, input: {} }), 'input.text');
    expectInvalid(await tenant.post(path, { ...echo, input: { text: 1 } }), 'input.text');
    expectInvalid(
      await tenant.post(path, { ...echo, input: { text: 'x', more: 1 } }),
      'input.more',
    );
    expect((await tenant.get(path)).body).toEqual([]);
  });

  test('one of the same agent, skill and cron expression is 409 conflict', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    await made(tenant, { enabled: false });

    for (const same of [
      {},
      { skill_version: 'v1.0' },
      { input: { text: 'another' } },
      { cron_expression: ' 0  9\t* * mon-fri ' },
    ]) {
      expectRefusal(await tenant.post(path, { ...echo, ...same }), 409, 'conflict');
    }
    for (const different of [
      { agent_id: 'other' },
      { cron_expression: '0 9 * * 1-5' },
      { cron_expression: '* * * * *' },
      { cron_expression: '*/1 * * * *' },
      any,
    ]) {
      expect((await tenant.post(path, { ...echo, ...different })).status).toBe(201);
    }
    expect((await (await newTenant(platform)).post(path, echo)).status).toBe(201);
  });

  test('50 of one kind in parallel are one', async () => {
    const tenant = await newTenant(platform);

    const answers = await Promise.all(Array.from({ length: 50 }, () => tenant.post(path, echo)));

    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(49);
  });
});

describe('GET /api/scheduled-jobs', () => {
  test('is a bare array of all, newest first, without input and last_run_job_id', async () => {
    const tenant = await newTenant(platform);
    const ids: string[] = [];
    for (let n = 0; n < 60; n++) {
      ids.push((await made(tenant, { cron_expression: `${n} * * * *` })).id);
    }

    const { status, body, headers } = await tenant.get(path);

    expect(status).toBe(200);
    expect(headers.get('x-total-count')).toBe('60');
    expect(body.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
    const { input: _, ...listed } = (await tenant.get(`${path}/${ids[7]}`)).body;
    const { last_run_job_id: __, ...expected } = listed;
    expect(body[52]).toEqual(expected);
  });

  test('of an organization that has none is empty', async () => {
    const tenant = await newTenant(platform);

    const { body, headers } = await tenant.get(path);

    expect({ body, total: headers.get('x-total-count') }).toEqual({ body: [], total: '0' });
  });
});

describe('a scheduled job that does not exist', () => {
  const requests: [string, string, unknown?][] = [
    ['GET', ''],
    ['PUT', '', {}],
    ['PUT', '', { enabled: 1 }],
    ['DELETE', ''],
    ['POST', '/run'],
    ['GET', '/runs'],
    ['GET', '/runs?limit=0'],
  ];

  test.each(requests)('is 404 not_found for %s %s', async (method, rest, body) => {
    const tenant = await newTenant(platform);
    const send = (id: string) => tenant.send(method, `${path}/${id}${rest}`, { body });

    for (const id of [randomId, 'x', '1', '%20', "'", randomId.toUpperCase(), 'x'.repeat(5_000)]) {
      expectRefusal(await send(id), 404, 'not_found');
    }
  });

  test.each(requests)("is as another organization's for %s %s", async (method, rest, body) => {
    const [a, b] = await Promise.all([newTenant(platform), newTenant(platform)]);
    const { id } = await made(a);

    const theirs = await b.send(method, `${path}/${id}${rest}`, { body });
    const nobodys = await b.send(method, `${path}/${randomId}${rest}`, { body });

    expectRefusal(theirs, 404, 'not_found');
    expect(theirs.text).toBe(nobodys.text);
    expect((await b.get(path)).body).toEqual([]);
    expect((await a.get(`${path}/${id}`)).body).toMatchObject({ id, enabled: true });
  });

  test("is what one for another organization's agent becomes", async () => {
    const [a, b] = await Promise.all([newTenant(platform), newTenant(platform)]);
    await a.post('/api/agents', { id: 'secretive' });
    const { id } = await made(b);

    for (const answer of [
      await b.post(path, { ...any, agent_id: 'secretive' }),
      await b.put(`${path}/${id}`, { agent_id: 'secretive' }),
    ]) {
      expectRefusal(answer, 404, 'not_found');
    }
  });
});

describe('PUT /api/scheduled-jobs/:jobId', () => {
  test('changes only the given fields, and answers as single retrieval', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'other' });
    const before = await made(tenant);
    clock.advance(1_000);
    const full = { ...before, last_run_job_id: null };

    const { status, body } = await tenant.put(`${path}/${before.id}`, { agent_id: 'other' });

    expect({ status, body }).toEqual({
      status: 200,
      body: { ...full, agent_id: 'other', updated_at: aTimestamp },
    });
    expect(Date.parse(body.updated_at)).toBe(Date.parse(before.updated_at) + 1_000);
    expect((await tenant.get(`${path}/${before.id}`)).body).toEqual(body);
  });

  test('{} changes nothing', async () => {
    const tenant = await newTenant(platform);
    const before = await made(tenant);
    clock.advance(1_000);

    const { status, body } = await tenant.put(`${path}/${before.id}`, {});

    expect({ status, body }).toEqual({ status: 200, body: { ...before, last_run_job_id: null } });
  });

  test('every field may change; input is replaced as a whole', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant, { ...any, input: { a: 1, b: 2 } });
    const changes = {
      ...echo,
      cron_expression: '30 1 * * *',
      input: { text: 'new' },
      enabled: false,
      skill_version: 'v1.0',
    };

    const { body } = await tenant.put(`${path}/${id}`, changes);

    expect(body).toMatchObject({ ...changes, next_run_at: '2026-01-01T01:30:00.000Z' });
    expect(body.input).toEqual({ text: 'new' });
  });

  test('a change into an existing one is 409 conflict, and changes nothing', async () => {
    const tenant = await newTenant(platform);
    await made(tenant, { cron_expression: '1 * * * *' });
    const { id } = await made(tenant, { cron_expression: '2 * * * *' });

    const answer = await tenant.put(`${path}/${id}`, {
      cron_expression: '1  * * * * ',
      enabled: false,
    });

    expectRefusal(answer, 409, 'conflict');
    expect((await tenant.get(`${path}/${id}`)).body).toMatchObject({
      cron_expression: '2 * * * *',
      enabled: true,
    });
    const own = await tenant.put(`${path}/${id}`, { cron_expression: ' 2 * * * *' });
    expect(own.body).toMatchObject({ cron_expression: ' 2 * * * *' });
  });

  test('an unknown agent or skill is 404, input that fits neither the old nor the new skill 400', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);
    const put = (changes: object) => tenant.put(`${path}/${id}`, changes);

    expectRefusal(await put({ agent_id: 'nobody', skill_name: 'nothing' }), 404, 'not_found');
    expectRefusal(await put({ skill_name: 'nothing' }), 404, 'skill_not_found');
    expectRefusal(await put({ skill_version: 'v2.0' }), 404, 'skill_not_found');
    expectInvalid(await put({ input: { text: 1 } }), 'input.text');
    expectInvalid(await put({ input: {} }), 'input.text');
    const { id: free } = await made(tenant, any);
    const toEcho = { skill_category: 'util', skill_name: 'echo' };
    expectInvalid(await tenant.put(`${path}/${free}`, toEcho), 'input.text');
  });

  test('needs the scopes of the skill before and after the change, before its body is judged', async () => {
    const tenant = await newTenant(platform);
    const { organization } = tenant;
    const { id } = await made(tenant);
    const narrow = await newTenant(platform, { organization_id: organization, scopes: ['util'] });
    const other = await newTenant(platform, { organization_id: organization, scopes: ['staged'] });

    for (const body of [
      {},
      { enabled: false },
      { enabled: 'x' },
      { nonsense: 1 },
      any,
      'no json',
    ]) {
      expectRefusal(await other.put(`${path}/${id}`, body), 403, 'insufficient_scope');
    }
    const { agent_id: _, cron_expression: __, ...toAny } = any;
    expectRefusal(await narrow.put(`${path}/${id}`, toAny), 403, 'insufficient_scope');
    expect((await narrow.put(`${path}/${id}`, { enabled: false })).status).toBe(200);
    expect((await tenant.put(`${path}/${id}`, toAny)).status).toBe(200);
    expectRefusal(await narrow.put(`${path}/${id}`, { enabled: true }), 403, 'insufficient_scope');
  });

  test('of one whose skill is deprecated disables it, but does not accept the skill anew', async () => {
    const tenant = await newTenant(platform);
    const hasty = { ...any, skill_name: 'hasty' };
    const { id } = await made(tenant, hasty);
    const version = '/admin/skills/staged/v1.0/hasty';
    await platform.admin('POST', `${version}/deprecate`);

    const disabled = await tenant.put(`${path}/${id}`, { enabled: false });
    const named = await tenant.put(`${path}/${id}`, { skill_name: 'hasty' });
    const replaced = await tenant.put(`${path}/${id}`, { input: { a: 1 } });
    const created = await tenant.post(path, { ...hasty, cron_expression: '1 1 1 1 *' });
    await platform.admin('POST', `${version}/activate`);

    expect(disabled.body).toMatchObject({ enabled: false });
    for (const answer of [named, replaced, created]) {
      expectRefusal(answer, 404, 'skill_not_found');
    }
  });

  test('next_run_at is ahead also while it is disabled', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant, { cron_expression: '* * * * *', enabled: false });

    for (let n = 0; n < 3; n++) {
      clock.advance(47_000);
      const ahead = Math.floor(clock.now() / 60_000 + 1) * 60_000;
      const shown = (await tenant.get(`${path}/${id}`)).body;
      const [listed] = (await tenant.get(path)).body;
      expect(shown.next_run_at).toBe(new Date(ahead).toISOString());
      expect(listed.next_run_at).toBe(shown.next_run_at);
    }
    const { body } = await tenant.put(`${path}/${id}`, { enabled: true });
    expect(Date.parse(body.next_run_at)).toBeGreaterThan(clock.now());
  });
});

describe('include=refusal', () => {
  const refusalsOf = async (tenant: Tenant, id: string) => {
    const [listed] = (await tenant.get(`${path}?include=refusal`)).body;
    const shown = (await tenant.get(`${path}/${id}?include=refusal`)).body;
    return [listed.refusal, shown.refusal];
  };

  test('is null for one that could run, and is left out unless it is asked for', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);

    expect(await refusalsOf(tenant, id)).toEqual([null, null]);
    expect((await tenant.get(path)).body[0]).not.toHaveProperty('refusal');
    expect((await tenant.get(`${path}/${id}`)).body).not.toHaveProperty('refusal');
    expectInvalid(await tenant.get(`${path}?include=origin`), 'include');
    expectInvalid(await tenant.get(`${path}/${id}?include=origin`), 'include');
  });

  test.each([
    ['revoked', (id: string) => platform.admin('DELETE', `/admin/api-keys/${id}`)],
    ['expired', async () => clock.advance(61_000)],
  ])('tells that the key that made it is %s', async (_, end) => {
    const expires_at = new Date(clock.now() + 60_000).toISOString();
    const maker = await newTenant(platform, { expires_at });
    const { organization: organization_id } = maker;
    const other = await newTenant(platform, { organization_id });
    const { id } = await made(maker);

    await end(maker.keyId);

    const message = 'Its key is revoked or expired';
    const refusal = { code: 'invalid_api_key', message };
    expect(await refusalsOf(other, id)).toEqual([refusal, refusal]);
    expect((await other.get(`${path}/${id}`)).body).toMatchObject({ enabled: true });
  });

  test('reports a paused agent and an inactive skill', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant, any);

    await tenant.put('/api/agents/default', { status: 'paused' });
    const paused = await refusalsOf(tenant, id);
    const version = '/admin/skills/staged/v1.0/any';
    await platform.admin('POST', `${version}/deprecate`);
    const inactive = await refusalsOf(tenant, id);
    await platform.admin('POST', `${version}/activate`);

    const agentPaused = { code: 'agent_paused', message: 'The agent default is paused' };
    const noSkill = {
      code: 'skill_not_found',
      message: expect.stringContaining('No active skill matches staged/v1.0/any'),
    };
    expect(paused).toEqual([agentPaused, agentPaused]);
    expect(inactive).toEqual([noSkill, noSkill]);
  });
});

describe('DELETE /api/scheduled-jobs/:jobId', () => {
  test('answers 204 with an empty body, and the scheduled job no longer exists', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);

    const answer = await tenant.delete(`${path}/${id}`);

    expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
    expectRefusal(await tenant.get(`${path}/${id}`), 404, 'not_found');
    expectRefusal(await tenant.delete(`${path}/${id}`), 404, 'not_found');
    expect((await tenant.post(path, echo)).status).toBe(201);
  });

  test('of all that name an agent lets it be deleted, which is 409 conflict before', async () => {
    const tenant = await newTenant(platform);
    await tenant.post('/api/agents', { id: 'named' });
    const { id } = await made(tenant, { agent_id: 'named', enabled: false });

    expectRefusal(await tenant.delete('/api/agents/named'), 409, 'conflict');
    await tenant.delete(`${path}/${id}`);
    expect((await tenant.delete('/api/agents/named')).status).toBe(204);
  });
});

test('other methods are 405 method_not_allowed with Allow', async () => {
  const tenant = await newTenant(platform);

  const onList = await tenant.delete(path);
  const onRun = await tenant.get(`${path}/${randomId}/run`);

  expectRefusal(onList, 405, 'method_not_allowed');
  expect(onList.headers.get('allow')).toBe('GET, HEAD, POST');
  expectRefusal(onRun, 405, 'method_not_allowed');
  expect(onRun.headers.get('allow')).toBe('POST');
});

describe('timezone', () => {
  const inBerlin = { timezone: 'Europe/Berlin' };

  test('makes the fields local times, and is shown wherever the scheduled job is', async () => {
    const tenant = await newTenant(platform);

    const created = await made(tenant, inBerlin);

    expect(created).toMatchObject({ ...inBerlin, next_run_at: '2026-01-01T08:00:00.000Z' });
    const { body: one } = await tenant.get(`${path}/${created.id}`);
    expect(one).toMatchObject(inBerlin);
    expect((await tenant.get(path)).body).toMatchObject([inBerlin]);
    const usage = await tenant.get('/api/skills/util/v1.0/echo/usages');
    expect(usage.body.scheduled_jobs).toMatchObject([inBerlin]);
  });

  test('is left out without one, and with UTC', async () => {
    const tenant = await newTenant(platform);

    const without = await made(tenant);
    const utc = await made(tenant, { cron_expression: '1 9 * * *', timezone: 'utc' });

    expect(Object.keys(utc)).toEqual(Object.keys(without));
    expect(Object.keys(utc)).not.toContain('timezone');
    for (const one of (await tenant.get(path)).body) expect(one).not.toHaveProperty('timezone');
  });

  test('may be in any letter case, and is shown as the database has it', async () => {
    const tenant = await newTenant(platform);

    expect(await made(tenant, { timezone: 'america/new_york' })).toMatchObject({
      timezone: 'America/New_York',
      next_run_at: '2026-01-01T14:00:00.000Z',
    });
  });

  test.each(['Europe/Atlantis', '+02:00', '', 'Europe/Berlin ', 'x'.repeat(65)])(
    '%j is 400 validation_error, at creation, in a change and in a preview',
    async (timezone) => {
      const tenant = await newTenant(platform);
      const { id } = await made(tenant);

      expectInvalid(await tenant.post(path, { ...any, timezone }), 'timezone');
      expectInvalid(await tenant.put(`${path}/${id}`, { timezone }), 'timezone');
      const query = new URLSearchParams({ cron_expression: '0 9 * * *', timezone });
      expectInvalid(await tenant.get(`${path}/preview?${query}`), 'timezone');
      expect((await tenant.get(`${path}/${id}`)).body).not.toHaveProperty('timezone');
    },
  );

  test('and the expression are both named where both are wrong', async () => {
    const tenant = await newTenant(platform);

    const wrong = { cron_expression: '61 * * * *', timezone: 'Europe/Atlantis' };
    const { body } = await tenant.post(path, { ...any, ...wrong });

    expect(body.details.map(({ field }: { field: string }) => field)).toEqual([
      'timezone',
      'cron_expression',
    ]);
  });

  test('can be set and changed by itself; UTC clears it', async () => {
    const tenant = await newTenant(platform);
    const { id } = await made(tenant);
    const change = async (fields: Record<string, unknown>) =>
      (await tenant.put(`${path}/${id}`, fields)).body;

    expect(await change(inBerlin)).toMatchObject({
      ...inBerlin,
      cron_expression: echo.cron_expression,
      next_run_at: '2026-01-01T08:00:00.000Z',
    });
    expect(await change({ cron_expression: '0 10 * * *' })).toMatchObject({
      ...inBerlin,
      next_run_at: '2026-01-01T09:00:00.000Z',
    });
    const cleared = await change({ timezone: 'UTC' });
    expect(cleared.next_run_at).toBe('2026-01-01T10:00:00.000Z');
    expect(cleared).not.toHaveProperty('timezone');
  });

  test('makes two of what else is the same; a third one is 409 conflict, as is a change into one', async () => {
    const tenant = await newTenant(platform);

    const { id } = await made(tenant);
    await made(tenant, inBerlin);
    await made(tenant, { timezone: 'Europe/Vienna' });

    for (const zone of [{}, { timezone: 'UTC' }, inBerlin, { timezone: 'EUROPE/berlin' }]) {
      expectRefusal(await tenant.post(path, { ...echo, ...zone }), 409, 'conflict');
    }
    expectRefusal(await tenant.put(`${path}/${id}`, inBerlin), 409, 'conflict');
  });
});
