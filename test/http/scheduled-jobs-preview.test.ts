import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

const clock = manualClock('2026-01-01T00:00:30.500Z');
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const path = '/api/scheduled-jobs/preview';
const previewOf = (parameters: Record<string, string>) =>
  `${path}?${new URLSearchParams(parameters)}`;

describe('GET /api/scheduled-jobs/preview', () => {
  test('shows the next five matches in UTC, the first one first', async () => {
    const tenant = await newTenant(platform);

    const answer = await tenant.get(previewOf({ cron_expression: '0 9 * * MON-FRI' }));

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      cron_expression: '0 9 * * MON-FRI',
      next_runs: [
        '2026-01-01T09:00:00.000Z',
        '2026-01-02T09:00:00.000Z',
        '2026-01-05T09:00:00.000Z',
        '2026-01-06T09:00:00.000Z',
        '2026-01-07T09:00:00.000Z',
      ],
    });
  });

  test('begins with the next_run_at of a scheduled job with this expression', async () => {
    const tenant = await newTenant(platform);
    const cron_expression = '  15\t10 *  jan  SUN ';
    const { body: created } = await tenant.post('/api/scheduled-jobs', {
      agent_id: 'default',
      skill_category: 'util',
      skill_name: 'echo',
      cron_expression,
      input: { text: 'x' },
    });

    const { body } = await tenant.get(previewOf({ cron_expression, count: '1' }));

    expect(body).toEqual({ cron_expression, next_runs: [created.next_run_at] });
  });

  test('shows up to 50 matches, however far apart they lie', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.get(previewOf({ cron_expression: '0 0 29 2 */7', count: '50' }));

    const days = body.next_runs.map((at: string) => new Date(at));
    expect(body.next_runs).toHaveLength(50);
    expect(body.next_runs.slice(0, 2)).toEqual([
      '2032-02-29T00:00:00.000Z',
      '2060-02-29T00:00:00.000Z',
    ]);
    for (const day of days) expect([day.getUTCDate(), day.getUTCDay()]).toEqual([29, 0]);
    expect(days.toSorted((a: Date, b: Date) => a.getTime() - b.getTime())).toEqual(days);
  });

  test('creates nothing', async () => {
    const tenant = await newTenant(platform);

    await tenant.get(previewOf({ cron_expression: '* * * * *' }));

    expect((await tenant.get('/api/scheduled-jobs')).body).toEqual([]);
  });

  test.each([
    ...['', ' ', '* * * *', '* * * * * *', '@daily', '60 * * * *', '5/15 * * * *', '*/0 * * * *'],
    ...['* * * * 8', '* * * * FRI-MON', '* * L * *', '0 0 30 2 *', '5-1 * * * *'],
    `*${' '.repeat(249)}* * * *`,
  ])('the cron expression %j is 400 validation_error', async (cron_expression) => {
    const tenant = await newTenant(platform);

    expectInvalid(await tenant.get(previewOf({ cron_expression })), 'cron_expression');
  });

  test('without an expression, and with two of them, it is 400 validation_error', async () => {
    const tenant = await newTenant(platform);
    const twice = `${previewOf({ cron_expression: '* * * * *' })}&cron_expression=1`;

    expectInvalid(await tenant.get(path), 'cron_expression');
    expectInvalid(await tenant.get(twice), 'cron_expression');
  });

  test.each(['0', '51', '-1', '1.5', 'five', '', '1e1', '05'])(
    'the count %j is 400 validation_error',
    async (count) => {
      const tenant = await newTenant(platform);

      expectInvalid(await tenant.get(previewOf({ cron_expression: '* * * * *', count })), 'count');
    },
  );

  test('needs a key', async () => {
    const answer = await platform.request('GET', previewOf({ cron_expression: '* * * * *' }));

    expectRefusal(answer, 401, 'authentication_required');
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is 405, and Allow says GET', async (method) => {
    const tenant = await newTenant(platform);

    const answer = await tenant.send(method, path);

    expectRefusal(answer, 405, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
  });

  test('shows the matches of a time zone, through a change of its clock', async () => {
    const tenant = await newTenant(platform);
    const parameters = { cron_expression: '30 2 28-30 MAR *', timezone: 'Europe/Berlin' };

    const { body } = await tenant.get(previewOf({ ...parameters, count: '3' }));

    expect(body).toEqual({
      ...parameters,
      next_runs: [
        '2026-03-28T01:30:00.000Z',
        '2026-03-29T01:00:00.000Z',
        '2026-03-30T00:30:00.000Z',
      ],
    });
  });

  test('leaves UTC out', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.get(
      previewOf({ cron_expression: '0 9 * * *', timezone: 'UTC', count: '1' }),
    );

    expect(body).toEqual({
      cron_expression: '0 9 * * *',
      next_runs: ['2026-01-01T09:00:00.000Z'],
    });
  });
});
