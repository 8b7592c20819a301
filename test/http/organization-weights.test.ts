/** `/admin/organizations/:organizationId/weight`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
let tenant: Tenant;
let path: string;
beforeAll(async () => {
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: '8' } });
  tenant = await newTenant(platform);
  path = `/admin/organizations/${tenant.organization}/weight`;
});
afterAll(() => platform.stop());

describe('the weight of an organization', () => {
  test('is 1 until the administrator sets it, and is shown with its queue', async () => {
    const before = await platform.admin('GET', path);
    const set = await platform.admin('PUT', path, { weight: 3 });
    await tenant.start('util/v1.0/echo', { text: 'x' }, { 'x-delay-seconds': '3600' });

    const { body } = await platform.admin('GET', '/admin/queue');

    expect(before.body).toEqual({ organization_id: tenant.organization, weight: 1 });
    expect(set).toMatchObject({ status: 200, body: { weight: 3 } });
    expect((await platform.admin('GET', path)).body.weight).toBe(3);
    const named = body.organizations.data.find(
      ({ name }: { name: string }) => name === tenant.organization,
    );
    expect(named.weight).toBe(3);
    expect((await tenant.get('/api/queue')).body.organizations.data[0].weight).toBe(null);
  });

  test('gives it more of the slots while others wait, without a restart', async () => {
    const [heavy, light] = [await newTenant(platform), await newTenant(platform)];
    const weightOf = `/admin/organizations/${heavy.organization}/weight`;
    const ofLight = Array.from({ length: 10 }, gate);
    const ofHeavy = gate();
    const run = (of: Tenant, { path: until }: { path: string }) =>
      of.start(play, acting({ until }));
    const active = async (of: Tenant) => (await of.get('/api/jobs?status=active')).body.total;
    const runs = (of: Tenant, n: number) =>
      waitFor(async () => (await active(of)) === n, { describe: `${n} runs go on` });
    // All slots, two that wait, and one of the other in the kept slot.
    const ids: string[] = [];
    for (const one of ofLight) ids.push(await run(light, one));
    await runs(light, 8);
    for (let i = 0; i < 3; i++) ids.push(await run(heavy, ofHeavy));
    await runs(heavy, 1);

    await platform.admin('PUT', weightOf, { weight: 100 });
    // Three slots of eight are left by the others: with a weight of 1 it would wait on beside its one run.
    for (const one of ofLight.slice(0, 3)) one.open();

    // Three where the worker has not read of the other's waiting jobs yet.
    await waitFor(async () => (await active(heavy)) >= 2, { describe: '2 runs or more go on' });
    expect(await active(light)).toBe(5);
    for (const one of [...ofLight, ofHeavy]) one.open();
    for (const id of ids.slice(0, 10)) await light.jobIn(id, 'completed');
    for (const id of ids.slice(10)) await heavy.jobIn(id, 'completed');
  });

  test.each([[{}], [{ weight: 0 }], [{ weight: 101 }], [{ weight: 1.5 }], [{ weight: '2' }]])(
    '%j is 400',
    async (body) => {
      expectInvalid(await platform.admin('PUT', path, body), 'weight');
    },
  );

  test('of an unknown organization is 404, and without the admin secret 401', async () => {
    const unknown = '/admin/organizations/no-such-one/weight';
    expectRefusal(await platform.admin('GET', unknown), 404, 'not_found');
    expectRefusal(await platform.admin('PUT', unknown, { weight: 2 }), 404, 'not_found');
    const without = await platform.request('GET', path);
    expectRefusal(without, 401, 'authentication_required');
  });
});
