/** Limits and pauses that operators set: of organizations, API keys, agents and skills. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newOrganization, newTenant, type Tenant } from '../support/tenant.ts';

const echo = 'util/v1.0/echo';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const waitsFor = async (tenant: Tenant, id: string) =>
  (await tenant.get(`/api/jobs/${id}`)).body.waiting_for as string | null;

test('an organization that is paused has its work accepted and begun once it is resumed', async () => {
  const tenant = await newTenant(platform);
  const path = `/admin/organizations/${tenant.organization}`;

  const paused = await platform.admin('POST', `${path}/pause`);
  expect(paused.body).toEqual({ paused: true, max_concurrency: null });
  const id = await tenant.start(echo, { text: 'x' });
  expect(await waitsFor(tenant, id)).toBe('pause of organization');
  const resumed = await platform.admin('POST', `${path}/resume`);

  expect(resumed.body).toEqual({ paused: false, max_concurrency: null });
  expect((await tenant.jobIn(id, 'completed')).body.waiting_for).toBeNull();
});

test('a skill that is paused begins for none, and other skills go on', async () => {
  const tenant = await newTenant(platform);
  const path = '/admin/skills/staged/v1.0/any';

  await platform.admin('POST', `${path}/pause`);
  const id = await tenant.start('staged/v1.0/any', { text: 'x' });
  const other = await tenant.run(echo, { text: 'x' });

  expect(other.body.status).toBe('completed');
  expect(await waitsFor(tenant, id)).toBe('pause of staged/v1.0/any');
  const resumed = await platform.admin('POST', `${path}/resume`);
  expect(resumed.body).toEqual({ paused: false });
  await tenant.jobIn(id, 'completed', 'failed');
});

test('the queue of an agent is paused and resumed with a key of its organization', async () => {
  const tenant = await newTenant(platform);

  const paused = await tenant.post('/api/agents/default/queue/pause');
  const id = await tenant.start(echo, { text: 'x' });

  expect(paused.body).toEqual({ paused: true, max_concurrency: null });
  expect(await waitsFor(tenant, id)).toBe('pause of agent queue');
  await tenant.post('/api/agents/default/queue/resume');
  await tenant.jobIn(id, 'completed');
});

describe('max_concurrency', () => {
  test.each([
    ['an organization', (t: Tenant) => `/admin/organizations/${t.organization}/queue`],
    ['an API key', (t: Tenant) => `/admin/api-keys/${t.keyId}/queue`],
    ['an agent', () => '/api/agents/default/queue'],
  ])('of %s holds further work until a run has ended', async (_, pathOf) => {
    const tenant = await newTenant(platform);
    const path = pathOf(tenant);
    const put = (max_concurrency: number | null) =>
      path.startsWith('/admin')
        ? platform.admin('PUT', path, { max_concurrency })
        : tenant.put(path, { max_concurrency });
    const end = gate();

    expect((await put(1)).body).toMatchObject({ max_concurrency: 1 });
    const first = await tenant.start(play, acting({ until: end.path }));
    const second = await tenant.start(echo, { text: 'x' });

    expect(await waitsFor(tenant, second)).toMatch(/^max_concurrency of /);
    end.open();
    await tenant.jobIn(first, 'completed');
    await tenant.jobIn(second, 'completed');
    expect((await put(null)).body).toMatchObject({ max_concurrency: null });
  });

  test('of a key and an agent may be given as they are created, and holds from the first job on', async () => {
    const organization_id = newOrganization();
    const tenant = await newTenant(platform, { organization_id });
    const made = { id: 'narrow', max_concurrency: 1 };
    expect((await tenant.post('/api/agents', made)).body).toMatchObject(made);
    const ofKey = await newTenant(platform, { organization_id, max_concurrency: 1 });

    const end = gate();
    const ids = [
      await tenant.start(play, acting({ until: end.path }), { 'x-agent-id': 'narrow' }),
      await tenant.start(echo, { text: 'x' }, { 'x-agent-id': 'narrow' }),
    ];
    const ofKeys = [
      await ofKey.start(play, acting({ until: end.path })),
      await ofKey.start(echo, { text: 'x' }),
    ];

    expect(await waitsFor(tenant, ids[1] as string)).toBe('max_concurrency of agent');
    expect(await waitsFor(tenant, ofKeys[1] as string)).toBe('max_concurrency of API key');
    end.open();
    for (const id of [...ids, ...ofKeys]) await tenant.jobIn(id, 'completed');
  });

  test('is shown with the agent and the key, and changed with the agent', async () => {
    const tenant = await newTenant(platform);
    const ofAgent = async () => (await tenant.get('/api/agents/default')).body.max_concurrency;
    const ofKey = async () => {
      const { body } = await platform.admin('GET', '/admin/api-keys');
      return (body as { id: string }[]).find(({ id }) => id === tenant.keyId);
    };
    expect(await ofAgent()).toBeNull();
    expect(await ofKey()).not.toHaveProperty('max_concurrency');

    const changed = await tenant.put('/api/agents/default', { max_concurrency: 3 });
    await platform.admin('PUT', `/admin/api-keys/${tenant.keyId}/queue`, { max_concurrency: 2 });

    expect(changed.body).toMatchObject({ max_concurrency: 3, version: 1 });
    expect(await ofAgent()).toBe(3);
    expect((await tenant.get('/api/agents')).body.data[0]).toMatchObject({ max_concurrency: 3 });
    expect((await tenant.get('/api/agents/default/queue')).body).toMatchObject({
      max_concurrency: 3,
    });
    expect(await ofKey()).toHaveProperty('max_concurrency', 2);
    await tenant.put('/api/agents/default', { max_concurrency: null });
    expect(await ofAgent()).toBeNull();
  });

  test('is an integer from 1 to 10,000, or null', async () => {
    const tenant = await newTenant(platform);

    for (const max_concurrency of [0, -1, 1.5, 10_001, '5']) {
      expectInvalid(
        await tenant.put('/api/agents/default/queue', { max_concurrency }),
        'max_concurrency',
      );
      expectInvalid(await tenant.post('/api/agents', { max_concurrency }), 'max_concurrency');
      const key = { client_name: 'x', scopes: ['*'], max_concurrency };
      expectInvalid(await platform.admin('POST', '/admin/api-keys', key), 'max_concurrency');
    }
  });
});

test('what does not exist is 404, and only the administrator sets an organization', async () => {
  const tenant = await newTenant(platform);
  const unknown = [
    await platform.admin('POST', '/admin/organizations/no-such/pause'),
    await platform.admin('PUT', `/admin/api-keys/${crypto.randomUUID()}/queue`, {
      max_concurrency: 1,
    }),
    await tenant.post('/api/agents/no-such/queue/pause'),
  ];
  for (const answer of unknown) expectRefusal(answer, 404, 'not_found');
  const skill = await platform.admin('POST', '/admin/skills/no/v1.0/such/pause');
  expectRefusal(skill, 404, 'skill_not_found');
  const own = await tenant.post(`/admin/organizations/${tenant.organization}/pause`);
  expect(own.status).toBe(401);
});
