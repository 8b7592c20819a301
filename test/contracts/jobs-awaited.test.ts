/** A client that waits for a job it has just sent: the run here tells the end, and the job is read only where needed. */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, jobsWorld } from '../support/jobs-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';

const org = 'default';
const noSignal = new AbortController().signal;

/** The database, with a count of the statements that are read outside transactions. */
function counted(database: Database): Database & { reads: number } {
  const { read } = database;
  const counting = {
    ...database,
    reads: 0,
    read: {
      ...read,
      all: ((statement, params) => {
        counting.reads += 1;
        return read.all(statement, params);
      }) as typeof read.all,
      first: ((statement, params) => {
        counting.reads += 1;
        return read.first(statement, params);
      }) as typeof read.first,
    },
  };
  return counting;
}

describe.each(await engines())('on $name', (engine) => {
  test('a job that runs here is shown at its end without being read', async () => {
    const world = await jobsWorld(engine);
    const database = counted(world.database);
    const job = await world.submit({ agentOverrides: '{"name":"Other"}', userId: 'Zoë' });
    const { run, ended } = await world.begin(job.id);

    const waiting = world.jobsOn(database).awaitAccepted(job, 60_000, noSignal);
    world.clock.advance(1_234);
    run.end(completed({ words: ['é', 2] }));
    const shown = await waiting;
    await ended;

    expect(database.reads).toBe(0);
    expect(shown).toEqual(await world.jobs.get(org, job.id));
    expect(shown).toMatchObject({ status: 'completed', output: { words: ['é', 2] }, attempt: 1 });
    expect(world.feed.hasListeners(job.id)).toBe(false);
  });

  test('a job that was claimed as it was accepted too', async () => {
    const world = await jobsWorld(engine, { freeSlots: () => 1 });
    const database = counted(world.database);
    const job = await world.submit();
    const ended = world.performer.performAccepted(world.begun[0] as (typeof world.begun)[number]);
    const run = await world.pool.begun(job.id);

    const waiting = world.jobsOn(database).awaitAccepted(job, 60_000, noSignal);
    run.end(completed());
    const shown = await waiting;
    await ended;

    expect(database.reads).toBe(0);
    expect(shown).toEqual(await world.jobs.get(org, job.id));
  });

  test('a job whose end is before its beginning, because the clock was set back, as it is recorded', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run, ended } = await world.begin(job.id);

    const waiting = world.jobs.awaitAccepted(job, 60_000, noSignal);
    world.clock.jumpTo(world.clock.now() - 60_000);
    run.end(completed());
    const shown = await waiting;
    await ended;

    expect(shown).toEqual(await world.jobs.get(org, job.id));
  });

  test.each<[string, RunOutcome, ((run: ScriptedRun) => unknown)?]>([
    ['fails', failed({ retryable: false })],
    ['reports progress', completed(), (run) => run.report({ type: 'progress', fraction: 0.5 })],
    ['logs', completed(), (run) => run.report({ type: 'log', message: 'hello', at: 1 })],
    [
      'begins a step',
      completed(),
      (run) =>
        run.ask('begin-step', { kind: 'skill', name: 'test/v1.0/other', digest: 'x', nth: 1 }),
    ],
  ])('a job is shown as it is recorded when its run %s', async (_, outcome, act) => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run, ended } = await world.begin(job.id);

    const waiting = world.jobs.awaitAccepted(job, 60_000, noSignal);
    await act?.(run);
    run.end(outcome);
    const shown = await waiting;
    await ended;

    expect(shown).toEqual(await world.jobs.get(org, job.id));
  });

  test('a job is shown as it is recorded when its second attempt completes', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const first = await world.begin(job.id);
    const waiting = world.jobs.awaitAccepted(job, 60_000, noSignal);
    first.run.report({ type: 'progress', fraction: 0.25 });
    first.run.end(failed());
    await first.ended;
    world.clock.advance(10_000);

    await world.attempt(job.id, completed());

    const shown = await waiting;
    expect(shown).toMatchObject({ status: 'completed', attempt: 2 });
    expect(shown).toEqual(await world.jobs.get(org, job.id));
  });

  test('a job that is cancelled while it runs is shown as cancelled', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run, ended } = await world.begin(job.id);
    const waiting = world.jobs.awaitAccepted(job, 60_000, noSignal);

    await world.jobs.cancel(org, job.id);
    run.end(completed());
    await ended;

    expect((await waiting)?.status).toBe('cancelled');
  });

  test('an end is not missed, however late the client begins to wait', async () => {
    const world = await jobsWorld(engine);
    const turns = Array.from({ length: 40 }, (_, turn) => turn);

    const shown = await Promise.all(
      turns.map(async (turn) => {
        const job = await world.submit();
        const { run } = await world.begin(job.id);
        run.end(completed());
        for (let i = 0; i < turn; i++) await (i % 4 === 3 ? nextTurn() : null);
        return world.jobs.awaitAccepted(job, 60_000, noSignal);
      }),
    );

    expect(shown.map((one) => one?.status)).toEqual(turns.map(() => 'completed'));
  });

  test('a run that has its outcome, or was asked to stop, is not waited for unread', async () => {
    const world = await jobsWorld(engine);
    const isRunning = (id: string) => world.running.isRunning(id);
    const [ending, stopping] = [await world.submit(), await world.submit()];
    expect(isRunning(ending.id)).toBe(false);
    const [first, second] = [await world.begin(ending.id), await world.begin(stopping.id)];
    expect(isRunning(ending.id)).toBe(true);

    first.run.end(completed());
    await Promise.resolve();
    expect(isRunning(ending.id)).toBe(false);
    await first.ended;
    expect(isRunning(ending.id)).toBe(false);

    expect(isRunning(stopping.id)).toBe(true);
    world.running.cancel(stopping.id);
    expect(isRunning(stopping.id)).toBe(false);
    second.run.end(completed());
    await second.ended;
  });

  test('the wait ends after its time, and when the client goes', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run, ended } = await world.begin(job.id);
    const gone = new AbortController();

    expect(await world.jobs.awaitAccepted(job, 0, noSignal)).toBeNull();
    expect(await world.jobs.awaitAccepted(job, 1, noSignal)).toBeNull();
    const waiting = world.jobs.awaitAccepted(job, 60_000, gone.signal);
    gone.abort();
    expect(await waiting).toBeNull();
    expect(world.feed.hasListeners(job.id)).toBe(false);
    run.end(completed());
    await ended;
  });
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
