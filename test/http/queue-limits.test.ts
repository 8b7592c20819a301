/** Limits and pauses that operators set: of organizations, API keys, agents and skills. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

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

  test('is an integer from 1 to 10,000, or null', async () => {
    const tenant = await newTenant(platform);

    for (const max_concurrency of [0, -1, 1.5, 10_001, '5']) {
      expectInvalid(
        await tenant.put('/api/agents/default/queue', { max_concurrency }),
        'max_concurrency',
      );
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
