/** Batches on both databases (docs/decisions/jobs.md). */
import { describe, expect, test, vi } from 'vitest';
import { deleteOldBatches } from '../../src/core/jobs/batches/batch-retention.ts';
import { BatchEnds, Batches } from '../../src/core/jobs/batches/batches.ts';
import { Execution } from '../../src/core/jobs/execute.ts';
import { deleteExpired } from '../../src/core/jobs/retention.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld } from '../support/jobs-world.ts';
import { manualClock } from '../support/manual-clock.ts';

const org = 'default';
const day = 24 * 60 * 60 * 1_000;

function batchesOf(world: JobsWorld) {
  const { context, skills, agents, conversations, acceptor, files } = world;
  const execution = new Execution(context, { skills, agents, conversations, acceptor, files });
  const batches = new Batches(context, { execution, acceptor });
  const create = (items: readonly unknown[], idempotencyKey?: string) =>
    batches.create(world.caller, { items, isAtomic: false, idempotencyKey });
  return { batches, create, ends: new BatchEnds(world.context) };
}

const item = (more = {}) => ({ skill: 'test/v1.0/echo', input: { a: 1 }, ...more });

describe.each(await engines())('on $name', (engine) => {
  test('a batch is completed once all of its jobs have ended, with one event', async () => {
    const world = await jobsWorld(engine);
    const { attempt, database, events, clock } = world;
    const { batches, create, ends } = batchesOf(world);
    const { batch } = await create([item(), item(), { skill: 'none' }]);
    const [first, second] = batch.items.map((one) => ('job_id' in one ? one.job_id : ''));
    const other = await create([item()]);

    await attempt(first ?? '', completed());
    await ends.complete();
    expect(await batches.get(org, batch.id)).toMatchObject({ completed_at: null, progress: 0.5 });
    await attempt(second ?? '', failed({ retryable: false }));
    await Promise.all([ends.complete(), new BatchEnds(world.context).complete()]);
    await ends.complete();

    expect(await batches.get(org, batch.id)).toMatchObject({
      completed_at: new Date(clock.now()).toISOString(),
      accepted: 2,
      refused: 1,
      counts: { completed: 1, failed: 1, cancelled: 0 },
      progress: 1,
    });
    expect((await batches.get(org, other.batch.id)).completed_at).toBeNull();
    const sent = (await events()).filter(({ type }) => type === 'batch.completed');
    expect(sent.map(({ data }) => JSON.parse(data))).toEqual([
      expect.objectContaining({ batch_id: batch.id, completed: 1, failed: 1, accepted: 2 }),
    ]);
    await expectConsistent(database);
  });

  test('an Idempotency-Key is free again after 24 hours', async () => {
    const world = await jobsWorld(engine);
    const { create } = batchesOf(world);
    const { batch } = await create([item()], 'key');
    expect(await create([item()], 'key')).toEqual({ batch, isReplay: true });
    await expect(create([item(), item()], 'key')).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });

    world.clock.advance(day + 1);

    expect((await create([item(), item()], 'key')).isReplay).toBe(false);
  });

  test('an Idempotency-Key gets the first answer, also where an item would be refused now', async () => {
    const { clock, caller, ...world } = await jobsWorld(engine);
    const { batches } = batchesOf({ clock, caller, ...world });
    const items = [item({ run_at: new Date(clock.now() + 60_000).toISOString() })];
    const send = (more = {}) =>
      batches.create(caller, { items, isAtomic: true, idempotencyKey: 'key', ...more });
    const { batch } = await send();

    clock.advance(60_000);

    expect(await send()).toEqual({ batch, isReplay: true });
    await expect(send({ isAtomic: false })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    await expect(send({ idempotencyKey: 'other' })).rejects.toMatchObject({
      code: 'validation_error',
    });
  });

  test('is judged with pauses for other work', async () => {
    const { create } = batchesOf(await jobsWorld(engine));
    let now = 0;
    const watch = vi.spyOn(performance, 'now').mockImplementation(() => {
      now += 11;
      return now;
    });
    let turns = 0;
    const count = () => {
      turns += 1;
      counter = setImmediate(count);
    };
    let counter = setImmediate(count);

    await create(Array.from({ length: 300 }, () => ({ skill: 'none' })));
    clearImmediate(counter);
    watch.mockRestore();

    expect(turns).toBeGreaterThanOrEqual(300);
  });

  test('keeps its counts while retention deletes jobs of it', async () => {
    // Retention finds jobs by their ids, which tell the real time.
    const world = await jobsWorld(engine, { clock: manualClock(new Date().toISOString()) });
    const { database, clock, jobs, attempt, context } = world;
    const { batches, create, ends } = batchesOf(world);
    const later = item({ delay_seconds: (40 * day) / 1_000 });
    const { batch } = await create([item(), item(), item(), later, { skill: 'none' }]);
    const ids = batch.items.map((one) => ('job_id' in one ? one.job_id : ''));
    await attempt(ids[0] ?? '', completed());
    await attempt(ids[1] ?? '', failed({ retryable: false }));
    await jobs.cancel(org, ids[2] ?? '');
    const { counts } = await batches.get(org, batch.id);
    clock.advance(31 * day);

    const deleted = await deleteExpired(
      {
        ...{ database, clock, writer: context.writer, readTo: null },
        removeOfJobs: async () => {},
      },
      30,
    );

    expect(deleted).toBe(3);
    const open = await batches.get(org, batch.id);
    expect(open).toMatchObject({ counts, progress: 0.75 });
    expect(counts).toMatchObject({ queued: 1, completed: 1, failed: 1, cancelled: 1 });
    await jobs.cancel(org, ids[3] ?? '');
    await ends.complete();
    expect(await batches.get(org, batch.id)).toMatchObject({
      counts: { queued: 0, completed: 1, failed: 1, cancelled: 2 },
    });
  });

  test('retention deletes a batch after its jobs', async () => {
    const world = await jobsWorld(engine);
    const { database, clock, jobs, row } = world;
    const { batches, create, ends } = batchesOf(world);
    const { batch } = await create([item()]);
    const [answer] = batch.items;
    const jobId = answer !== undefined && 'job_id' in answer ? answer.job_id : '';
    await jobs.cancel(org, jobId);
    await ends.complete();
    clock.advance(31 * day);

    await deleteOldBatches(database, clock, 30);
    expect((await row(jobId)).batch_id).toBe(batch.id);
    expect((await batches.list(org, { limit: 5, offset: 0 })).total).toBe(1);
    await database.write((tx) =>
      tx.kysely.deleteFrom('jobs').where('id', '=', jobId).executeTakeFirst(),
    );
    expect(await deleteOldBatches(database, clock, 30)).toBe(1);

    await expect(batches.get(org, batch.id)).rejects.toMatchObject({ code: 'not_found' });
  });
});
