/**
 * A job that waits, as its run has left it on record three days ago: two seconds of work, waits that have ended, and
 * three that are open, of which a person has to decide one. Beside it the jobs that it started.
 */
import type { Insertable } from 'kysely';
import type { JobStepsTable } from '../../src/adapters/database/tables.ts';
import { attemptEndN } from '../../src/core/jobs/feed.ts';
import { jobCounts } from '../../src/core/jobs/jobs.store.ts';
import { timestamp } from '../../src/kernel/clock.ts';
import { approvalWaits } from '../../src/platform/approvals/approval-waits.ts';
import type { Platform } from './platform.ts';

const echo = 'util/v1.0/echo';
const minute = 60_000;
const day = 24 * 60 * minute;

export interface WaitingJob {
  readonly jobId: string;
  readonly approvalId: string;
  /** The newest first. */
  readonly childIds: readonly string[];
}

/** Records it in the organization of a key. */
export async function addWaitingJob(
  { platform, key }: { platform: Platform; key: string },
  { title = 'Ship order 1042 to Ms. Okafor?', children = 3 } = {},
): Promise<WaitingJob> {
  const ended = async (text: string) => {
    const { body } = await platform.request('POST', `/api/${echo}`, { key, body: { text } });
    await platform.jobIn(key, body.job_id, 'completed');
    return body.job_id as string;
  };
  const jobId = await ended('order 1042');
  const childIds: string[] = [];
  for (let i = 0; i < children; i++) childIds.unshift(await ended(`label ${i + 1}`));
  const row = await platform.database.read.kysely
    .selectFrom('jobs')
    .selectAll()
    .where('id', '=', jobId)
    .executeTakeFirstOrThrow();
  const now = Date.now();
  const start = now - 3 * day;
  const asked = start + 2 * day + 2_410;
  const steps = stepsOf(jobId, start, asked);
  await platform.database.write(async (tx) => {
    await tx.insert('job_steps', steps);
    const open = { organization_id: row.organization_id, job_id: jobId, n: 8 };
    await tx.insert('event_waits', [{ ...open, event: 'parcel.scanned', key: '1042' }]);
    const question = {
      title,
      details: {
        total: '129.00 EUR',
        express: true,
        customer: { name: 'Ms. Okafor', city: 'Bergen', note: null },
        parcels: [
          { label: 'A-1', weight_kg: 2.4, contents: ['lamp', 'bulb'] },
          { label: 'A-2', weight_kg: 0.8, contents: ['shade'] },
        ],
      },
      timeoutMs: 7 * day,
    };
    const job = row as unknown as Parameters<typeof approvalWaits.read>[1];
    const wait = approvalWaits.read(question, job, asked);
    await approvalWaits.begin(tx, { job, n: 7, name: 'ship', ...wait }, asked);
    await jobCounts.change(tx, '', [{ kind: row, from: 'completed', to: 'waiting' }]);
    await tx.kysely
      .updateTable('jobs')
      .set({ status: 'waiting', output: null, finished_at: null, due_at: now + day })
      .set({ created_at: start, run_at: start, started_at: start + 12 })
      .where('id', '=', jobId)
      .execute();
    const told = { status: 'waiting', attempt: 1, at: timestamp(asked + 80) };
    const data = { ...told, started_at: timestamp(start + 12), due_at: timestamp(now + day) };
    await tx.insert('job_events', [
      {
        ...{ job_id: jobId, epoch: row.epoch, n: attemptEndN, type: 'status', created_at: now },
        data: JSON.stringify(data),
      },
    ]);
    for (const [i, id] of childIds.entries()) {
      await tx.kysely
        .updateTable('jobs')
        .set({ parent_job_id: jobId, parent_step: i === 0 ? 6 : 20 + i, depth: 1 })
        .where('id', '=', id)
        .execute();
    }
  });
  const { body } = await platform.request('GET', `/api/approvals?job_id=${jobId}`, { key });
  return { jobId, approvalId: body.data[0].approval_id, childIds };
}

function stepsOf(jobId: string, start: number, asked: number) {
  const paid = start + 2 * day;
  const now = start + 3 * day;
  const open = { status: 'waiting' as const, finished_at: null };
  type Step = Pick<Insertable<JobStepsTable>, 'kind' | 'name' | 'started_at'> &
    Partial<Insertable<JobStepsTable>>;
  const steps: readonly Step[] = [
    { kind: 'step', name: 'reserve', started_at: start + 20, finished_at: start + 900 },
    {
      ...{ kind: 'sleep', name: 'cool down', started_at: start + 905 },
      ...{ finished_at: start + 15 * minute, due_at: start + 15 * minute },
    },
    {
      ...{ kind: 'event', name: 'payment', started_at: start + 15 * minute + 40 },
      ...{ finished_at: paid, due_at: start + 3 * day },
    },
    { kind: 'step', name: 'pack', started_at: paid + 30, finished_at: paid + 1_100 },
    {
      ...{ kind: 'model', name: 'openai/test', started_at: paid + 1_110 },
      finished_at: paid + 1_800,
    },
    {
      ...{ kind: 'run', name: 'label', started_at: paid + 1_810, due_at: now + day },
      finished_at: paid + 2_400,
    },
    {
      kind: 'approval',
      name: 'ship',
      started_at: asked,
      due_at: now + 7 * day,
      ...open,
    },
    { kind: 'event', name: 'parcel', started_at: asked, due_at: now + 2 * day, ...open },
    { kind: 'sleep', name: 'remind', started_at: asked, due_at: now + day, ...open },
  ];
  return steps.map((step, i) => ({
    ...{ job_id: jobId, n: i + 1, epoch: 1, generation: `key ${i}`, parent: null, turn: 1 },
    ...{ call_id: null, error: null, message_id: null, memory: null, result: null },
    ...{ prompt_tokens: null, completion_tokens: null, due_at: null, status: 'completed' as const },
    ...step,
  }));
}
