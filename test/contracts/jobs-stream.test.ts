/** A job's event stream: once each, in order, from any point on (docs/decisions/jobs.md). */
import { describe, expect, test } from 'vitest';
import type { JobEvent, Position } from '../../src/core/jobs/feed.ts';
import { whileThere } from '../support/broken-database.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { waitFor } from '../support/wait-for.ts';

async function collect(events: AsyncIterable<JobEvent>): Promise<JobEvent[]> {
  const collected: JobEvent[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}

/** Listens from a position on; what it has heard so far, and all of it when the stream has ended. */
function listen(world: JobsWorld, id: string, after?: Position) {
  const heard: JobEvent[] = [];
  const all = (async () => {
    for await (const event of world.stream(id, after)) heard.push(event);
    return heard;
  })();
  return { heard, all };
}

const words = (events: readonly JobEvent[]) =>
  events.map(({ type, data }) => {
    switch (type) {
      case 'status':
        return `${data.status}${data.attempt === undefined ? '' : ` ${data.attempt}`}`;
      case 'log':
        return `log ${data.message}`;
      case 'message':
        return `message ${data.content}`;
      default:
        return `${type} ${type === 'progress' ? data.fraction : ''}`;
    }
  });

const say = (n: number) => (run: ScriptedRun) => {
  for (let i = 1; i <= n; i++) {
    run.report({ type: 'log', message: `line ${i}`, at: 0 });
  }
};

/** Recorded whole, it is told again from every position on: exactly the rest, in the same words. */
async function expectResumable(world: JobsWorld, id: string, told: readonly JobEvent[]) {
  const recorded = await collect(world.stream(id));
  expect(recorded).toEqual(told);
  for (const [i, position] of told.entries()) {
    expect(await collect(world.stream(id, position)), `after ${i + 1}`).toEqual(told.slice(i + 1));
  }
}

describe.each(await engines())('on $name', (engine) => {
  test('events while the database is unavailable are sent when it is back', async () => {
    let isDown = false;
    const database = whileThere(await engine.fresh(), () => isDown);
    const world = await jobsWorld(engine, { database });
    const job = await world.submit();
    const { heard, all } = listen(world, job.id);

    await world.attempt(job.id, completed(), async (run) => {
      isDown = true;
      say(3)(run);
      await new Promise((resolve) => setImmediate(resolve));
      expect(heard.map(({ type }) => type)).not.toContain('log');
      isDown = false;
    });

    expect(words(await all)).toEqual([
      'queued',
      'active 1',
      'log line 1',
      'log line 2',
      'log line 3',
      'completed 1',
    ]);
  });

  test('the stream tells a job from its acceptance to its end, in order', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { all } = listen(world, job.id);
    world.clock.advance(10);

    await world.attempt(job.id, completed(), (run) => {
      world.clock.advance(10);
      run.report({ type: 'log', message: 'line', fields: { n: 1 }, at: 0 });
      run.report({ type: 'progress', fraction: 0.5 });
      run.report({ type: 'progress', fraction: 1, note: 'done' });
      run.report({ type: 'message', role: 'assistant', content: 'so' });
      world.clock.advance(10);
    });

    const at = (ms: number) => new Date(job.created_at + ms).toISOString();
    const told = await all;
    expect(told.map(({ type, data }) => ({ type, ...data }))).toEqual([
      { type: 'status', status: 'queued', at: at(0) },
      { type: 'status', status: 'active', attempt: 1, at: at(10) },
      { type: 'log', message: 'line', fields: { n: 1 }, at: at(20) },
      { type: 'progress', fraction: 0.5, note: null, at: at(20) },
      { type: 'progress', fraction: 1, note: 'done', at: at(20) },
      { type: 'message', role: 'assistant', content: 'so', at: at(20) },
      { type: 'status', status: 'completed', attempt: 1, at: at(30) },
    ]);
    await expectResumable(world, job.id, told);
  });

  test('the stream tells every attempt, with the reason why it was not the last', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { all } = listen(world, job.id);

    await world.attempt(job.id, failed({ message: 'first' }), say(2));
    world.clock.advance(5_000);
    await world.attempt(job.id, failed({ message: 'second' }));
    world.clock.advance(5_000);
    await world.attempt(job.id, failed({ message: 'third' }), say(1));

    const told = await all;
    expect(words(told)).toEqual([
      'queued',
      'active 1',
      'log line 1',
      'log line 2',
      'queued 1',
      'active 2',
      'queued 2',
      'active 3',
      'log line 1',
      'failed 3',
    ]);
    expect(told[4]?.data).toMatchObject({
      error: { code: 'skill_execution_failed', message: 'first' },
      run_at: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(told.at(-1)?.data).toMatchObject({ error: { message: 'third' } });
    await expectResumable(world, job.id, told);
  });

  test('the stream tells attempts that were not charged', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { all } = listen(world, job.id);

    await world.attempt(job.id, { kind: 'displaced', suspect: true }, say(1));
    await world.attempt(job.id, { kind: 'displaced', suspect: false });
    await world.attempt(job.id, completed(), say(1));

    const told = await all;
    expect(words(told)).toEqual([
      'queued',
      'active 1',
      'log line 1',
      'queued 1',
      'active 1',
      'queued 1',
      'active 1',
      'log line 1',
      'completed 1',
    ]);
    await expectResumable(world, job.id, told);
  });

  test('between two attempts the stream can be resumed from every position', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { heard, all } = listen(world, job.id);
    await world.attempt(job.id, { kind: 'displaced', suspect: false }, say(1));
    await world.attempt(job.id, failed(), say(2));
    await waitFor(() => heard.length === 8, { describe: 'both attempts are told' });
    const sofar = [...heard];

    const resumed = sofar.map((position) => listen(world, job.id, position));
    await waitFor(() => resumed.every((one, i) => one.heard.length === sofar.length - i - 1), {
      describe: 'each has the rest',
    });
    world.clock.advance(5_000);
    await world.attempt(job.id, completed());

    const told = await all;
    expect(words(told)).toEqual([
      'queued',
      'active 1',
      'log line 1',
      'queued 1',
      'active 1',
      'log line 1',
      'log line 2',
      'queued 1',
      'active 2',
      'completed 2',
    ]);
    for (const [i, one] of resumed.entries()) {
      expect(await one.all, `after ${i + 1}`).toEqual(told.slice(i + 1));
    }
  });

  test('a job that is cancelled before it ran ends its stream', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { heard, all } = listen(world, job.id);
    await waitFor(() => heard.length === 1, { describe: 'the stream has begun' });

    await world.jobs.cancel('default', job.id);

    const told = await all;
    expect(words(told)).toEqual(['queued', 'cancelled 0']);
    expect(told.at(-1)?.data).toMatchObject({ error: { code: 'cancelled' } });
    await expectResumable(world, job.id, told);
  });

  test('a job that is cancelled while it waits for a retry ends its stream', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { all } = listen(world, job.id);
    await world.attempt(job.id, failed(), say(1));

    await world.jobs.cancel('default', job.id);

    const told = await all;
    expect(words(told)).toEqual(['queued', 'active 1', 'log line 1', 'queued 1', 'cancelled 1']);
    await expectResumable(world, job.id, told);
  });

  test('a run that is cancelled ends its stream when it has stopped', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { all } = listen(world, job.id);

    await world.attempt(job.id, { kind: 'aborted' }, async (run) => {
      say(1)(run);
      await world.jobs.cancel('default', job.id);
    });

    const told = await all;
    expect(words(told)).toEqual(['queued', 'active 1', 'log line 1', 'cancelled 1']);
    await expectResumable(world, job.id, told);
  });

  test('a run whose process died is told as an attempt that failed', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit({ maxAttempts: 2 });
    const { all } = listen(world, job.id);
    const { run } = await world.worker('dies').begin(job.id);
    say(1)(run);
    await waitFor(
      async () =>
        (await world.database.read.kysely.selectFrom('job_events').selectAll().execute())[0],
      { describe: 'the line is recorded' },
    );

    world.clock.advance(leaseMs);
    await world.recovery.sweep();
    world.clock.advance(5_000);
    await world.attempt(job.id, completed());

    const told = await all;
    expect(words(told)).toEqual([
      'queued',
      'active 1',
      'log line 1',
      'queued 1',
      'active 2',
      'completed 2',
    ]);
    expect(told[3]?.data).toMatchObject({ error: { code: 'worker_lost' } });
    await expectResumable(world, job.id, told);
  });

  test('more lines than are read at a time come whole and in order', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit({ maxAttempts: 4 });
    const { all } = listen(world, job.id);
    const lines = (n: number) => Array.from({ length: n }, (_, i) => `log line ${i + 1}`);

    // Around the 500 of a page: 498 lines, the end of the attempt, and one more; exactly a page; two.
    for (const n of [498, 500, 1_250]) {
      await world.attempt(job.id, failed(), say(n));
      world.clock.advance(10_000);
    }
    await world.attempt(job.id, completed(), say(3));

    const told = await all;
    const attemptOf = (n: number, i: number) => [`active ${i + 1}`, ...lines(n), `queued ${i + 1}`];
    expect(words(told)).toEqual([
      'queued',
      ...[498, 500, 1_250].flatMap(attemptOf),
      'active 4',
      ...lines(3),
      'completed 4',
    ]);
    expect(await collect(world.stream(job.id))).toEqual(told);
    for (const i of [
      0, 1, 2, 497, 498, 499, 500, 501, 502, 999, 1_000, 1_003, 1_500, 2_254, 2_259,
    ]) {
      expect(await collect(world.stream(job.id, told[i])), `after ${i + 1}`).toEqual(
        told.slice(i + 1),
      );
    }
  });

  test('one attempt adds at most 5,000 entries, and its end in any case', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();

    await world.attempt(job.id, completed(), say(6_000));

    const told = await collect(world.stream(job.id));
    expect(told).toHaveLength(5_003);
    expect(words(told).at(-1)).toBe('completed 1');
  });

  test('a client that connects at any moment gets every event once: recorded and live, no gap, no double', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const listeners = [listen(world, job.id)];

    const { run, ended } = await world.begin(job.id);
    for (let i = 1; i <= 60; i++) {
      run.report({ type: 'log', message: `line ${i}`, at: 0 });
      // Some arrive while lines are being written, some while nothing is.
      if (i % 3 === 0) listeners.push(listen(world, job.id));
      if (i % 20 === 0) {
        const { heard } = listeners[0]!;
        await waitFor(() => heard.length === i + 2, { describe: `line ${i} is told` });
        listeners.push(listen(world, job.id));
      }
    }
    run.end(failed());
    listeners.push(listen(world, job.id));
    await ended;
    world.clock.advance(5_000);
    const second = world.attempt(job.id, completed(), say(5));
    for (let i = 0; i < 5; i++) {
      listeners.push(listen(world, job.id));
      await new Promise(setImmediate);
    }
    await second;
    listeners.push(listen(world, job.id));

    const told = await listeners[0]!.all;
    expect(words(told)).toEqual([
      'queued',
      'active 1',
      ...Array.from({ length: 60 }, (_, i) => `log line ${i + 1}`),
      'queued 1',
      'active 2',
      ...Array.from({ length: 5 }, (_, i) => `log line ${i + 1}`),
      'completed 2',
    ]);
    for (const [i, { all }] of listeners.entries()) {
      expect(await all, `listener ${i}`).toEqual(told);
    }
  });

  test('the stream of a job that has ended ends at once, also after its last event', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    await world.attempt(job.id, completed());

    const told = await collect(world.stream(job.id));

    expect(await collect(world.stream(job.id, told.at(-1)))).toEqual([]);
    expect(await collect(world.stream(job.id, { epoch: 999_999, n: 0 }))).toEqual([]);
    expect(world.feed.hasListeners(job.id)).toBe(false);
  });

  test('the stream of a job that does not exist is empty', async () => {
    const world = await jobsWorld(engine);

    expect(await collect(world.stream('0191f3b0-0000-7000-8000-000000000000'))).toEqual([]);
  });

  test('a client that disconnects ends its stream at any point', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const gone = new AbortController();
    const heard: JobEvent[] = [];

    const reading = (async () => {
      for await (const event of world.stream(job.id, undefined, gone.signal)) heard.push(event);
    })();
    await waitFor(() => heard.length === 1, { describe: 'the stream has begun' });
    gone.abort();
    await reading;

    expect(world.feed.hasListeners(job.id)).toBe(false);
  });

  test('a client that had gone before the stream began gets what is recorded, and it ends', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const gone = new AbortController();
    gone.abort();

    const told = await collect(world.stream(job.id, undefined, gone.signal));

    expect(told.length).toBeLessThanOrEqual(1);
    expect(world.feed.hasListeners(job.id)).toBe(false);
  });

  test('a client that stops reading leaves nothing behind', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();

    const events = world.stream(job.id);
    await events.next();
    expect(world.feed.hasListeners(job.id)).toBe(true);
    await events.return(undefined);

    expect(world.feed.hasListeners(job.id)).toBe(false);
  });

  test('a client that reads too slowly is sent away, to come again where it was', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit({ maxAttempts: 20 });
    const slow = world.stream(job.id);
    const first = await slow.next();

    for (let i = 0; i < 3; i++) {
      await world.attempt(job.id, { kind: 'displaced', suspect: false }, say(2_500));
    }
    const heard: JobEvent[] = [first.value];
    for await (const event of slow) heard.push(event);
    await world.attempt(job.id, completed());
    const rest = await collect(world.stream(job.id, heard.at(-1)));

    expect(heard.length).toBeLessThan(7_500);
    expect([...heard, ...rest]).toEqual(await collect(world.stream(job.id)));
  });
});
