/** Waits that are ended from outside, on every database: once, and their jobs are due at once. */
import { describe, expect, test } from 'vitest';
import type { Hint } from '../../src/adapters/queue/queue.ts';
import type { EndOfWait } from '../../src/core/jobs/end-waits.ts';
import { wokenAt } from '../../src/core/jobs/turns/waiting.store.ts';
import { engines } from '../support/databases.ts';
import { type JobsWorld, jobsWorld, waitEndsOf } from '../support/jobs-world.ts';

const later = 60_000;

async function waitingWorld(engine: Parameters<typeof jobsWorld>[0]) {
  const world = await jobsWorld(engine);
  const sent: Hint[] = [];
  const waitEnds = waitEndsOf({ sendHints: (_, hints) => void sent.push(...hints) });
  const end = (ends: readonly EndOfWait[]) =>
    world.database.write((tx) => waitEnds.endWaits(tx, ends, world.clock.now()));
  return { ...world, sent, end };
}

/** A job with one waiting step, as a run that waits leaves it. */
async function waitingJob({ submit, database, clock }: JobsWorld): Promise<string> {
  const { id } = await submit();
  const dueAt = clock.now() + later;
  await database.write(async (tx) => {
    await tx.kysely
      .updateTable('jobs')
      .set({ status: 'waiting', due_at: dueAt, attempt: 1, epoch: 1, started_at: clock.now() })
      .where('id', '=', id)
      .execute();
    const step = {
      kind: 'event',
      generation: 'k',
      turn: 1,
      name: 'paid',
      status: 'waiting',
    } as const;
    await tx.insert('job_steps', [
      { job_id: id, n: 1, epoch: 1, ...step, due_at: dueAt, started_at: clock.now() },
    ]);
  });
  return id;
}

const stepOf = ({ database }: JobsWorld, jobId: string) =>
  database.read.kysely
    .selectFrom('job_steps')
    .select(['status', 'result', 'error', 'finished_at'])
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();

describe.each(await engines())('on $name', (engine) => {
  test('a wait that is ended has its result on record, and its job is due at once', async () => {
    const world = await waitingWorld(engine);
    const job_id = await waitingJob(world);

    expect(await world.end([{ job_id, n: 1, result: { value: { paid: true } } }])).toEqual([true]);

    const now = world.clock.now();
    const step = { status: 'completed', result: '{"value":{"paid":true}}', finished_at: now };
    expect(await stepOf(world, job_id)).toMatchObject(step);
    expect(await world.row(job_id)).toMatchObject({ status: 'waiting', due_at: wokenAt(now) });
    expect(world.sent).toMatchObject([{ id: job_id, delayMs: 0 }]);
  });

  test('of two ends of one wait the first counts, and the second sends no hint', async () => {
    const world = await waitingWorld(engine);
    const job_id = await waitingJob(world);
    const end = (value: number) => world.end([{ job_id, n: 1, result: { value } }]);

    const ended = await Promise.all([end(1), end(2), end(3)]);

    const value = ended.findIndex(([isEnd]) => isEnd) + 1;
    expect(ended.flat().filter(Boolean)).toHaveLength(1);
    expect(await stepOf(world, job_id)).toMatchObject({ result: `{"value":${value}}` });
    expect(world.sent).toHaveLength(1);
  });

  test('each end of another wait sends a hint, because a claim may have found the job locked', async () => {
    const world = await waitingWorld(engine);
    const job_id = await waitingJob(world);
    const step = { kind: 'event', turn: 1, name: 'paid', status: 'waiting', epoch: 1 } as const;
    const at = { due_at: world.clock.now() + later, started_at: world.clock.now() };
    await world.database.write((tx) =>
      tx.insert('job_steps', [{ job_id, n: 2, generation: 'l', ...step, ...at }]),
    );
    const result = { value: 1 };
    await world.end([{ job_id, n: 1, result }]);
    const { due_at } = await world.row(job_id);
    world.clock.advance(10);

    await world.end([{ job_id, n: 2, result }]);

    expect(await world.row(job_id)).toMatchObject({ status: 'waiting', due_at });
    expect(new Set(world.sent.map(({ generation }) => generation)).size).toBe(2);
  });

  test('a wait may end with an error, which is on record with whether a retry may help', async () => {
    const world = await waitingWorld(engine);
    const job_id = await waitingJob(world);
    const error = { code: 'skill_timeout', message: 'too slow', retryable: true };

    await world.end([{ job_id, n: 1, result: { error } }]);

    const step = await stepOf(world, job_id);
    expect(step).toMatchObject({ status: 'failed', result: null });
    expect(JSON.parse(step.error ?? '')).toEqual(error);
  });

  test('waits of several jobs end in one transaction; unknown ones are left out', async () => {
    const world = await waitingWorld(engine);
    const [first, second] = [await waitingJob(world), await waitingJob(world)];
    const result = { value: null };

    const ended = await world.end([
      { job_id: second, n: 1, result },
      { job_id: first, n: 7, result },
      { job_id: first, n: 1, result },
    ]);

    expect(ended).toEqual([true, false, true]);
    expect(world.sent.map(({ id }) => id).sort()).toEqual([first, second].sort());
  });
});
