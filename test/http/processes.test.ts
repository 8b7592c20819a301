import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

const clock = manualClock('2026-01-01T00:00:00.000Z');
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

describe('GET /admin/processes', () => {
  test('a platform of one process lists that one, which is there now', async () => {
    const before = await platform.admin('GET', '/admin/processes');
    clock.advance(60_000);

    const after = await platform.admin('GET', '/admin/processes');

    expect(before.status).toBe(200);
    expect(before.body).toEqual({
      data: [
        {
          id: anId,
          roles: ['api', 'scheduler', 'worker'],
          version: expect.stringMatching(/\S/),
          skills: expect.arrayContaining(['util/v1.0/echo']),
          started_at: '2026-01-01T00:00:00.000Z',
          seen_at: '2026-01-01T00:00:00.000Z',
          last_claim_at: null,
          last_job_at: null,
        },
      ],
      total: 1,
    });
    expect(after.body.data).toEqual([
      { ...before.body.data[0], seen_at: '2026-01-01T00:01:00.000Z' },
    ]);
  });

  test('says when the process last began a job, also one that it accepted itself', async () => {
    const tenant = await newTenant(platform);
    clock.advance(60_000);
    const began = new Date(clock.now()).toISOString();
    await tenant.run('util/v1.0/echo', { text: 'x' });
    clock.advance(5_000);

    const { body } = await platform.admin('GET', '/admin/processes');

    // In a cluster it is told with the next beat.
    expect(body.data).toMatchObject([{ last_job_at: began }]);
  });

  test('needs the admin secret', async () => {
    const tenant = await newTenant(platform);

    const without = await platform.request('GET', '/admin/processes');
    expectRefusal(without, 401, 'authentication_required');
    const { status } = await tenant.get('/admin/processes');
    expect(status).toBe(401);
  });
});
