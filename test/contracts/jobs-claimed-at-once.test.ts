/** A job that is accepted beside a worker with a free slot is claimed in the transaction that accepts it. */
import { describe, expect, test } from 'vitest';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';

const place = () => 1;

/** Lets the run of a job begin that was claimed as it was accepted. */
async function beginClaimed({ begun, performer, pool }: JobsWorld, id: string) {
  const job = begun.find((one) => one.id === id);
  if (job === undefined) throw new Error('It was not claimed.');
  const ended = performer.performAccepted(job);
  const run = await pool.begun(id, ended);
  if (run === null) throw new Error('It did not begin.');
  return { run, ended };
}

describe.each(await engines())('on $name', (engine) => {
  test('it is under its first attempt from the start, and no hint is sent for it', async () => {
    const world = await jobsWorld(engine, { freeSlots: place });

    const job = await world.submit();

    const now = world.clock.now();
    expect(await world.row(job.id)).toMatchObject({
      status: 'active',
      attempt: 1,
      epoch: 1,
      deaths: 0,
      run_at: now,
      started_at: now,
      due_at: now + leaseMs,
    });
    expect(world.begun.map(({ id }) => id)).toEqual([job.id]);
    expect(world.hints).toEqual([]);
    await expectConsistent(world.database);
  });

  test('its run ends as any other', async () => {
    const world = await jobsWorld(engine, { freeSlots: place });
    const job = await world.submit();
    const { run, ended } = await beginClaimed(world, job.id);

    run.end(completed({ words: 2 }));
    await ended;

    expect(await world.jobs.get('default', job.id)).toMatchObject({
      status: 'completed',
      attempt: 1,
      output: { words: 2 },
    });
    const told = (await world.events(job)).map(({ type }) => type);
    expect(told).toEqual(['conversation.created', 'skill.completed']);
    await expectConsistent(world.database);
  });

  test('its retry comes by the queue', async () => {
    const world = await jobsWorld(engine, { freeSlots: place });
    const job = await world.submit();
    const { run, ended } = await beginClaimed(world, job.id);

    run.end(failed());
    await ended;

    expect(await world.row(job.id)).toMatchObject({ status: 'queued', attempt: 1, epoch: 1 });
    expect(world.hints).toMatchObject([{ id: job.id, generation: 1 }]);
    await expectConsistent(world.database);
  });

  test('of many at once as many are claimed as there are free slots, the first ones', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 2 });

    const jobs = await world.database.write((tx) =>
      world.acceptor.acceptWithin(
        tx,
        ['a', 'b', 'c', 'd'].map((text) => world.request({ input: JSON.stringify({ text }) })),
      ),
    );

    const ids = jobs.map((acceptance) => (acceptance as { job: { id: string } }).job.id);
    expect(world.begun.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(world.hints.map(({ id }) => id)).toEqual(ids.slice(2));
    expect((await world.row(ids[2] as string)).status).toBe('queued');
    await expectConsistent(world.database);
  });

  test('a rolled back job does not begin', async () => {
    const world = await jobsWorld(engine, { freeSlots: place });

    const failing = world.database.write(async (tx) => {
      await world.acceptor.acceptWithin(tx, [world.request()]);
      throw new Error('changed my mind');
    });

    await expect(failing).rejects.toThrow('changed my mind');
    expect(world.begun).toEqual([]);
    expect((await world.jobs.list('default', {}, { limit: 1, offset: 0 })).total).toBe(0);
    await expectConsistent(world.database);
  });

  test('the death of its process uses up the attempt, as for every active run', async () => {
    const world = await jobsWorld(engine, { freeSlots: place });
    const job = await world.submit();
    world.clock.advance(leaseMs);

    await world.recovery.sweep();

    expect(await world.row(job.id)).toMatchObject({ status: 'queued', attempt: 1 });
    await expectConsistent(world.database);
  });

  test('a client that follows its stream sees it accepted, begun and ended', async () => {
    const world = await jobsWorld(engine, { freeSlots: place });
    const job = await world.submit();
    const { run, ended } = await beginClaimed(world, job.id);
    run.end(completed());
    await ended;

    const seen: unknown[] = [];
    for await (const { epoch, type, data } of world.stream(job.id)) {
      seen.push([epoch, type === 'status' ? data.status : type]);
    }

    expect(seen).toEqual([
      [0, 'queued'],
      [1, 'active'],
      [1, 'completed'],
    ]);
  });
});
