/** Usage and budgets, as clients and the administrator see them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { charge, reserve, type UsageOwner } from '../../src/core/usage/reservations.ts';
import { costless, withoutPrice } from '../support/charges.ts';
import { aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const clock = manualClock('2026-11-21T12:00:00.000Z');
const now = '2026-11-21T12:00:00.000Z';
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const unknownId = '0191f3b0-0000-7000-8000-000000000000';
const noLimits = {
  tokens_per_day: null,
  tokens_per_month: null,
  usd_per_day: null,
  usd_per_month: null,
};

/** A call of a model that began `daysAgo` and used 30 + 12 tokens, as a run of these owners records it. */
async function useTokens(tenant: Tenant, owners: UsageOwner[], daysAgo = 0): Promise<void> {
  const organizationId = tenant.organization;
  const reservedAt = clock.now() - daysAgo * 24 * 3_600_000;
  await platform.database.write(async (tx) => {
    const wanted = { organizationId, owners, prompt: 30, output: 20, ...withoutPrice };
    const reservation = await reserve(tx, wanted, reservedAt);
    if (reservation.kind !== 'granted') throw new Error(reservation.kind);
    const { reserved } = reservation;
    const usage = { prompt: 30, completion: 12 };
    const spent = { reserved, usage, estimated: 0, ...costless };
    await charge(tx, [{ organizationId, owners, reservedAt, ...spent }]);
  });
}

/** An owner of usage and a budget, with the credentials to read them. */
interface Subject {
  readonly tenant: Tenant;
  readonly owner: UsageOwner;
  readonly path: string;
  /** The field and the id that answers name it by. */
  readonly shown: Record<string, string>;
  send(method: string, path: string, body?: unknown): ReturnType<Tenant['send']>;
}

async function anAgent(): Promise<Subject> {
  const tenant = await newTenant(platform);
  await tenant.post('/api/agents', { id: 'support' });
  return {
    tenant,
    owner: { kind: 'agent', id: 'support' },
    path: '/api/agents/support',
    shown: { agent_id: 'support' },
    send: (method, path, body) => tenant.send(method, path, { body }),
  };
}

async function aScheduledJob(): Promise<Subject> {
  const tenant = await newTenant(platform);
  const { body } = await tenant.post('/api/scheduled-jobs', {
    agent_id: 'default',
    skill_category: 'util',
    skill_name: 'echo',
    cron_expression: '0 0 1 1 *',
    input: { text: 'x' },
  });
  return {
    tenant,
    owner: { kind: 'scheduled_job', id: body.id },
    path: `/api/scheduled-jobs/${body.id}`,
    shown: { scheduled_job_id: body.id },
    send: (method, path, given) => tenant.send(method, path, { body: given }),
  };
}

async function anApiKey(): Promise<Subject> {
  const tenant = await newTenant(platform);
  return {
    tenant,
    owner: { kind: 'api_key', id: tenant.keyId },
    path: `/admin/api-keys/${tenant.keyId}`,
    shown: { api_key_id: tenant.keyId },
    send: (method, path, body) => platform.admin(method, path, body),
  };
}

describe.each([
  ['an agent', anAgent, '/api/agents/nobody'],
  ['a scheduled job', aScheduledJob, `/api/scheduled-jobs/${unknownId}`],
  ['an API key', anApiKey, `/admin/api-keys/${unknownId}`],
] as const)('%s', (_, make, unknown) => {
  test('has no budget at first, and none after its deletion', async () => {
    const { path, shown, send } = await make();
    const nothing = { ...shown, ...noLimits, updated_at: null };

    expect(await send('GET', `${path}/budget`)).toMatchObject({ status: 200, body: nothing });
    await send('PUT', `${path}/budget`, { tokens_per_day: 5 });
    for (let i = 0; i < 2; i++) {
      expect(await send('DELETE', `${path}/budget`)).toMatchObject({ status: 204, text: '' });
    }
    expect((await send('GET', `${path}/budget`)).body).toEqual(nothing);
  });

  test('has the budget that was set last, as a whole', async () => {
    const { path, shown, send } = await make();

    const first = await send('PUT', `${path}/budget`, {
      tokens_per_day: 1,
      tokens_per_month: 1e15,
    });
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({
      ...shown,
      tokens_per_day: 1,
      tokens_per_month: 1e15,
      updated_at: now,
    });
    expect((await send('GET', `${path}/budget`)).body).toEqual(first.body);

    const second = await send('PUT', `${path}/budget`, { tokens_per_month: 7 });
    expect(second.body).toMatchObject({ tokens_per_day: null, tokens_per_month: 7 });
    const third = await send('PUT', `${path}/budget`, {
      tokens_per_day: 8,
      tokens_per_month: null,
    });
    expect(third.body).toMatchObject({ tokens_per_day: 8, tokens_per_month: null });
    const last = await send('PUT', `${path}/budget`, {});
    expect(last.body).toEqual({ ...shown, ...noLimits, updated_at: aTimestamp });
    expect((await send('GET', `${path}/budget`)).body).toEqual(last.body);
  });

  test.each([
    ...[0, -1, 1.5, 1e15 + 1, '5', true, [], {}].map(
      (value) => [{ tokens_per_day: value }, 'tokens_per_day'] as const,
    ),
    [{ tokens_per_month: 0 }, 'tokens_per_month'],
    [{ tokens_per_day: 1, tokens: 1 }, 'tokens'],
    [[], 'body'],
    [undefined, 'body'],
  ] as const)('does not take the budget %j: 400', async (body, field) => {
    const { path, send } = await make();
    await send('PUT', `${path}/budget`, { tokens_per_day: 5 });

    expectInvalid(await send('PUT', `${path}/budget`, body), field);

    expect((await send('GET', `${path}/budget`)).body).toMatchObject({ tokens_per_day: 5 });
  });

  test('shows the usage by day, newest first, with its limits', async () => {
    const { tenant, owner, path, shown, send } = await make();
    await useTokens(tenant, [owner]);
    await useTokens(tenant, [owner], 21);
    await useTokens(tenant, [owner], 30);
    await send('PUT', `${path}/budget`, { tokens_per_day: 100 });

    const { status, body } = await send('GET', `${path}/usage`);

    const day = {
      prompt_tokens: 30,
      completion_tokens: 12,
      total_tokens: 42,
      estimated_tokens: 0,
      calls: 1,
      unreported_calls: 0,
    };
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...shown,
      from: '2026-10-23',
      to: '2026-11-21',
      limits: { tokens_per_day: 100, tokens_per_month: null },
      today: { used: 42, reserved: 0, limit: 100, left: 58 },
      month: { used: 42, reserved: 0, limit: null, left: null },
      days: [
        { day: '2026-11-21', ...day },
        { day: '2026-10-31', ...day },
      ],
    });
    const earlier = await send('GET', `${path}/usage?from=2026-10-22&to=2026-10-30`);
    expect(earlier.body).toMatchObject({
      from: '2026-10-22',
      to: '2026-10-30',
      today: { used: 42 },
      days: [{ day: '2026-10-22', ...day }],
    });
  });

  test.each([
    ['from=2026-11-31', 'from'],
    ['from=yesterday', 'from'],
    ['from=', 'from'],
    ['to=2026-1-1', 'to'],
    ['to=2026-11-20&to=2026-11-21', 'to'],
    ['to[]=2026-11-21', 'to'],
    ['from=2026-11-22', 'from'],
    ['from=2025-10-17', 'from'],
  ])('does not show the usage of %s: 400', async (query, field) => {
    const { path, send } = await make();

    expectInvalid(await send('GET', `${path}/usage?${query}`), field);
  });

  test('that is unknown has neither: 404, before the body is judged', async () => {
    const { send } = await make();

    const malformed = unknown.replace(/[^/]+$/, 'No%20Id');
    for (const path of [unknown, malformed]) {
      expectRefusal(await send('GET', `${path}/usage?from=x`), 404, 'not_found');
      expectRefusal(await send('GET', `${path}/budget`), 404, 'not_found');
      expectRefusal(await send('PUT', `${path}/budget`, '{"broken'), 404, 'not_found');
      expectRefusal(await send('DELETE', `${path}/budget`), 404, 'not_found');
    }
  });
});

describe.each([
  ['an agent', anAgent],
  ['a scheduled job', aScheduledJob],
] as const)('%s', (_, make) => {
  test('of another organization has neither usage nor a budget: 404', async () => {
    const { path, tenant } = await make();
    await tenant.put(`${path}/budget`, { tokens_per_day: 5 });
    const stranger = await newTenant(platform);

    expectRefusal(await stranger.get(`${path}/usage`), 404, 'not_found');
    expectRefusal(await stranger.get(`${path}/budget`), 404, 'not_found');
    expectRefusal(await stranger.put(`${path}/budget`, {}), 404, 'not_found');
    expectRefusal(await stranger.delete(`${path}/budget`), 404, 'not_found');

    expect((await tenant.get(`${path}/budget`)).body).toMatchObject({ tokens_per_day: 5 });
  });

  test('may get its budget from any key of its organization that has the scope budgets', async () => {
    const { path, tenant } = await make();
    const { organization: organization_id } = tenant;
    const other = await newTenant(platform, { organization_id, scopes: ['nothing'] });
    const budgeter = await newTenant(platform, { organization_id, scopes: ['budgets'] });

    expect((await other.put(`${path}/budget`, { tokens_per_day: 9 })).status).toBe(403);
    expect((await budgeter.put(`${path}/budget`, { tokens_per_day: 5 })).status).toBe(200);
    expect((await tenant.get(`${path}/budget`)).body).toMatchObject({ tokens_per_day: 5 });
  });

  test('loses its budget as it is deleted', async () => {
    const { path, tenant, owner } = await make();
    await tenant.put(`${path}/budget`, { tokens_per_day: 5 });

    expect((await tenant.delete(path)).status).toBe(204);

    const left = await platform.database.read.kysely
      .selectFrom('token_budgets')
      .select('owner_id')
      .where('organization_id', '=', tenant.organization)
      .where('owner_id', '=', owner.id)
      .execute();
    expect(left).toEqual([]);
  });
});

test('a new agent with the id of a deleted one starts without usage', async () => {
  const tenant = await newTenant(platform);
  const owner: UsageOwner = { kind: 'agent', id: 'again' };
  const make = () => tenant.post('/api/agents', { id: owner.id });
  const listed = async (kind: string) => {
    const query = `owner_kind=${kind}&organization_id=${tenant.organization}`;
    return (await platform.admin('GET', `/admin/usage?${query}`)).body.data;
  };

  for (const used of [42, 84]) {
    expect((await make()).status).toBe(201);
    await useTokens(tenant, [owner]);
    await tenant.delete('/api/agents/again');
    expect((await make()).status).toBe(201);
    await tenant.put('/api/agents/again/budget', { tokens_per_day: 50 });

    const { body } = await tenant.get('/api/agents/again/usage');

    const nothing = { used: 0, reserved: 0, limit: 50, left: 50 };
    expect(body).toMatchObject({ today: nothing, days: [] });
    expect(await listed('agent')).toEqual([]);
    expect(await listed('deleted_agent')).toMatchObject([
      { owner_id: 'again', total_tokens: used },
    ]);
    await tenant.delete('/api/agents/again');
  }
});

test('a revoked key keeps its usage and its budget', async () => {
  const { tenant, owner, path } = await anApiKey();
  await useTokens(tenant, [owner]);
  await platform.admin('PUT', `${path}/budget`, { tokens_per_day: 50 });
  await platform.admin('DELETE', path);

  const { status, body } = await platform.admin('GET', `${path}/usage`);

  expect(status).toBe(200);
  expect(body.today).toMatchObject({ used: 42, reserved: 0, limit: 50, left: 8 });
});

describe('GET /admin/usage', () => {
  const path = '/admin/usage';

  test('shows the usage of all owners, by day, newest first, a page at a time', async () => {
    const { tenant, owner } = await anAgent();
    const key: UsageOwner = { kind: 'api_key', id: tenant.keyId };
    await useTokens(tenant, [owner, key]);
    await useTokens(tenant, [owner], 3);
    await useTokens(tenant, [owner], 30);
    await tenant.put('/api/agents/support/budget', { tokens_per_month: 1_000 });
    const query = `organization_id=${tenant.organization}`;

    const { status, body } = await platform.admin('GET', `${path}?${query}`);

    const row = {
      organization_id: tenant.organization,
      prompt_tokens: 30,
      completion_tokens: 12,
      total_tokens: 42,
      estimated_tokens: 0,
      calls: 1,
      unreported_calls: 0,
    };
    const agent = {
      ...row,
      owner_kind: 'agent',
      owner_id: 'support',
      tokens_per_day: null,
      tokens_per_month: 1_000,
    };
    const ofKey = { ...row, owner_kind: 'api_key', owner_id: tenant.keyId, ...noLimits };
    const data = [
      { ...agent, day: '2026-11-21' },
      { ...ofKey, day: '2026-11-21' },
    ].concat({
      ...agent,
      day: '2026-11-18',
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ data, total: 3, limit: 50, offset: 0 });
    const second = await platform.admin('GET', `${path}?${query}&limit=1&offset=1`);
    expect(second.body).toMatchObject({ data: data.slice(1, 2), total: 3, limit: 1, offset: 1 });
    const keys = await platform.admin('GET', `${path}?${query}&owner_kind=api_key`);
    expect(keys.body).toMatchObject({ data: data.slice(1, 2), total: 1 });
    const days = await platform.admin('GET', `${path}?${query}&from=2026-10-22&to=2026-10-22`);
    expect(days.body).toMatchObject({ data: [{ ...agent, day: '2026-10-22' }], total: 1 });
  });

  test('shows all organizations by default', async () => {
    const tenants = [await newTenant(platform), await newTenant(platform)];
    for (const tenant of tenants) await useTokens(tenant, [{ kind: 'agent', id: 'default' }]);

    const { body } = await platform.admin('GET', `${path}?limit=200`);

    const found = body.data.map((row: { organization_id: string }) => row.organization_id);
    expect(found).toEqual(expect.arrayContaining(tenants.map((one) => one.organization)));
  });

  test.each([...hostileLimits, 'limit=201'])('%s is 400', async (query) => {
    expectInvalid(await platform.admin('GET', `${path}?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    expectInvalid(await platform.admin('GET', `${path}?${query}`), 'offset');
  });

  test.each([
    ['owner_kind=nobody', 'owner_kind'],
    ['from=2026-02-30', 'from'],
    ['from=2025-10-17', 'from'],
    ['to=2020-01-01&from=2020-01-02', 'from'],
    ['organization_id=a&organization_id=b', 'organization_id'],
  ])('%s is 400', async (query, field) => {
    expectInvalid(await platform.admin('GET', `${path}?${query}`), field);
  });
});

test('usage of keys and of all, and budgets of keys, are the administrator’s alone', async () => {
  const { tenant, path } = await anApiKey();

  for (const one of [`${path}/usage`, `${path}/budget`, '/admin/usage']) {
    expectRefusal(await tenant.get(one), 401, 'authentication_required');
  }
  expectRefusal(await tenant.put(`${path}/budget`, {}), 401, 'authentication_required');
  expectRefusal(await tenant.delete(`${path}/budget`), 401, 'authentication_required');
  for (const one of ['/api/agents/default/usage', '/api/agents/default/budget']) {
    expectRefusal(await platform.request('GET', one), 401, 'authentication_required');
  }
});
