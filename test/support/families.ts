/** Jobs with jobs that their runs have started. */
import { expect } from 'vitest';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import type { JobsWorld } from './jobs-world.ts';
import type { ScriptedRun } from './scripted-pool.ts';

export const waiting: RunOutcome = { kind: 'waiting' };
const echo = 'test/v1.0/echo';

/** The number of the step of a child; the first ones are the run's own. */
export const numberOf = (nth: number) => 10 + nth;

/** Starts a child as the run of a job does: a step that waits, and the job, in one transaction. */
export async function startChild(world: JobsWorld, jobId: string, nth = 1): Promise<string> {
  const [id = ''] = await startChildren(world, jobId, [nth]);
  return id;
}

/** Starts many children in one transaction, which runs do only few at a time; their ids. */
export async function startChildren(
  world: JobsWorld,
  jobId: string,
  numbers: readonly number[],
): Promise<string[]> {
  const { childJobs, clock, database } = world;
  const now = clock.now();
  const job = await world.row(jobId);
  await database.write(async (tx) => {
    for (const n of numbers.map(numberOf)) {
      const { input, dueAt } = childJobs.read({ skill: echo, input: { n } }, job, now);
      const name = `letter ${n}`;
      const step = { generation: `k${n}`, turn: 1, name, epoch: job.epoch, started_at: now };
      const row = {
        ...step,
        job_id: jobId,
        n,
        kind: 'run',
        status: 'waiting',
        due_at: dueAt,
      } as const;
      await tx.insert('job_steps', [row]);
      await childJobs.begin(tx, { job, n, name, input, dueAt });
    }
  });
  const rows = await database.read.kysely
    .selectFrom('jobs')
    .select('id')
    .where('parent_job_id', '=', jobId)
    .where('parent_step', 'in', numbers.map(numberOf))
    .orderBy('parent_step')
    .execute();
  return rows.map(({ id }) => id);
}

/** Lets a scripted run open its journal, as each run does that takes a step. */
const openJournal = (run: ScriptedRun) =>
  run.ask('begin-step', { kind: 'skill', name: echo, nth: 0, digest: 'd' });

/** A job that has started children, and whose run goes on. */
export async function activeParent(world: JobsWorld, children = 1, parent?: string) {
  const id = parent ?? (await world.submit()).id;
  const { run, ended } = await world.begin(id);
  const ids: string[] = [];
  for (let n = 1; n <= children; n++) ids.push(await startChild(world, id, n));
  await openJournal(run);
  return { id, run, ended, children: ids, child: ids[0] as string };
}

/** A job that waits for its children, and holds nothing. */
export async function waitingParent(world: JobsWorld, children = 1, parent?: string) {
  const { run, ended, ...family } = await activeParent(world, children, parent);
  run.end(waiting);
  await ended;
  expect(await statusOf(world, family.id)).toBe('waiting');
  return family;
}

export const statusOf = async (world: JobsWorld, id: string) => (await world.row(id)).status;
