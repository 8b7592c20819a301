/** The waits of a job among its steps: what each waits for, and until when. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noTokenStats } from '../../src/adapters/http/schemas.ts';
import { expectInvalid } from '../support/expectations.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const echo = 'util/v1.0/echo';
const approvalId = '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11';
const now = Date.parse('2026-01-01T00:00:00.000Z');
const dueAt = now + 60_000;

describe('GET /api/jobs/:jobId/steps', () => {
  let platform: Platform;
  let tenant: Tenant;
  let jobId: string;
  let childId: string;

  beforeAll(async () => {
    platform = await startPlatform();
    tenant = await newTenant(platform);
    jobId = await tenant.start(echo, { text: 'parent' });
    childId = await tenant.start(echo, { text: 'child' });
    for (const id of [jobId, childId]) await tenant.jobIn(id, 'completed');
    await recordWaits();
  });
  afterAll(() => platform.stop());

  /** A step and a wait of each kind; all waits are open but the last. */
  async function recordWaits() {
    const open = { due_at: dueAt, status: 'waiting' as const, finished_at: null };
    const rows = [
      { kind: 'step', name: 'reserve', status: 'completed', finished_at: now + 5 },
      { kind: 'sleep', name: 'cool down', ...open },
      { kind: 'event', name: 'payment', ...open },
      { kind: 'event', name: 'any payment', ...open },
      { kind: 'approval', name: 'ship', ...open },
      { kind: 'run', name: 'letter', ...open },
      { kind: 'event', name: 'earlier', ...open, status: 'completed', finished_at: now + 9 },
    ] as const;
    const { organization } = tenant;
    const wait = { organization_id: organization, event: 'order.paid', job_id: jobId };
    await platform.database.write(async (tx) => {
      await tx.insert(
        'job_steps',
        rows.map((row, i) => ({
          ...{ job_id: jobId, n: i + 1, epoch: 1, generation: `key ${i}`, parent: null, turn: 1 },
          ...{ call_id: null, error: null, message_id: null, memory: null, result: null },
          ...{ prompt_tokens: null, completion_tokens: null, started_at: now, due_at: null },
          ...row,
        })),
      );
      await tx.insert('event_waits', [
        { ...wait, key: '4711', n: 3 },
        { ...wait, key: '', n: 4 },
      ]);
      await tx.insert('approvals', [
        {
          ...{ id: approvalId, organization_id: organization, agent_id: 'default', job_id: jobId },
          ...{ n: 5, step: 'ship', title: 'Ship?', details: '{}', digest: 'd', status: 'pending' },
          ...{
            conversation_id: 'c',
            requested_at: now,
            expires_at: dueAt,
            decided_at: null,
            decided_by: null,
          },
          ...{ decided_by_kind: null, decided_by_key: null, reason: null },
          ...{ fields: null, answer: null },
        },
      ]);
      await tx.kysely
        .updateTable('jobs')
        .set({ parent_job_id: jobId, parent_step: 6 })
        .where('id', '=', childId)
        .execute();
    });
  }

  const steps = async (query = '') =>
    (await tenant.get(`/api/jobs/${jobId}/steps${query}`)).body as {
      data: { name: string; waits_for: unknown; due_at: unknown }[];
      total: number;
    };

  test('says of each wait what it waits for, and until when', async () => {
    const { data } = await steps();

    const due = new Date(dueAt).toISOString();
    expect(data.map(({ name, waits_for, due_at }) => [name, waits_for, due_at])).toEqual([
      ['reserve', null, null],
      ['cool down', null, due],
      ['payment', { event: 'order.paid', key: '4711' }, due],
      ['any payment', { event: 'order.paid', key: null }, due],
      ['ship', { approval_id: approvalId, status: 'pending' }, due],
      [
        'letter',
        {
          ...{ job_id: childId, agent_id: 'default', skill: echo, status: 'completed' },
          token_stats: noTokenStats,
          total_token_stats: noTokenStats,
        },
        due,
      ],
      ['earlier', null, due],
    ]);
    expect(data[0]).toMatchObject({ kind: 'step', generation_id: null });
  });

  test('lists with status=waiting what the job waits for', async () => {
    const { data, total } = await steps('?status=waiting&limit=2&offset=1');

    expect(total).toBe(5);
    expect(data.map(({ name }) => name)).toEqual(['payment', 'any payment']);
    expectInvalid(await tenant.get(`/api/jobs/${jobId}/steps?status=asleep`), 'status');
  });
});
