/**
 * The answer to a COMMIT is lost: PostgreSQL has committed, and the connection breaks before the platform knows.
 * A proxy does that to chosen COMMITs of a real server. What is repeated finds what it has written before; what was
 * claimed without a confirmation is given back, and no attempt is charged for it.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { watchTasks } from '../../src/apps/composition/background.ts';
import { WaitEnds } from '../../src/core/jobs/end-waits.ts';
import { findUnbegunJobs } from '../../src/core/jobs/leases.store.ts';
import { Reports } from '../../src/core/jobs/runs/reports.ts';
import { claimJobs } from '../../src/core/jobs/turns/admission.store.ts';
import { createLogger, type Logger } from '../../src/kernel/log.ts';
import { Approvals } from '../../src/platform/approvals/approvals.ts';
import { Tick } from '../../src/platform/schedules/tick.ts';
import { type CommitProxy, startCommitProxy } from '../support/commit-proxy.ts';
import { expectConsistent } from '../support/consistency.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { completed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';
import { schedulesWorld } from '../support/schedules-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { waitFor } from '../support/wait-for.ts';
import { countsOf, webhooksWorld } from '../support/webhooks-world.ts';

const log = createLogger('silent');
const minute = 60_000;
const all = await engines();

describe.each(all.filter(({ name }) => name === 'PostgreSQL'))('on $name', (engine) => {
  /** A database behind the proxy. */
  async function doubtful(): Promise<{ proxy: CommitProxy; database: Database }> {
    const place = await engine.place();
    const url = new URL(place.at);
    const proxy = await startCommitProxy(Number(url.port));
    url.port = String(proxy.port);
    const database = await openPostgres(url.href, log);
    onTestFinished(async () => {
      await database.close();
      proxy.close();
    });
    return { proxy, database };
  }

  const loseFirst = (proxy: CommitProxy, statement?: RegExp) =>
    proxy.lose((n) => n === 1, statement);

  /** What a process does again and again for the runs that it has. */
  async function watchRuns({ database, running }: JobsWorld): Promise<void> {
    for (const [, run] of watchTasks(database, running)) await run();
  }

  /** What became of a job, once nothing is claimed without a run. */
  const givenBack = ({ row }: JobsWorld, id: string) =>
    waitFor(async () => (await row(id)).status !== 'active', {
      describe: 'the claim is given back',
    });

  describe.each([1, 3])('a job with %i attempts', (maxAttempts) => {
    test('that is claimed as it is accepted is given back, and its first attempt is still to come', async () => {
      const { proxy, database } = await doubtful();
      const world = await jobsWorld(engine, { database, freeSlots: () => 1 });
      loseFirst(proxy);

      await expect(world.submit({ maxAttempts })).rejects.toThrow('cannot be used');

      expect(proxy.lost).toBe(1);
      const [job] = await database.read.kysely.selectFrom('jobs').selectAll().execute();
      const id = job?.id ?? '';
      await givenBack(world, id);
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0, epoch: 1 });
      expect(world.begun).toEqual([]);
      await world.attempt(id, completed());
      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1, epoch: 2 });
      await expectConsistent(database);
    });

    test('that is claimed from the queue is given back', async () => {
      const { proxy, database } = await doubtful();
      const world = await jobsWorld(engine, { database });
      const { id } = await world.submit({ maxAttempts });
      loseFirst(proxy);

      await expect(world.perform(id)).rejects.toThrow('cannot be used');

      expect(proxy.lost).toBe(1);
      await givenBack(world, id);
      expect(await world.row(id)).toMatchObject({ status: 'queued', attempt: 0, epoch: 1 });
      await world.attempt(id, completed());
      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
      await expectConsistent(database);
    });

    test('whose beginning and end are both without a confirmation runs once', async () => {
      const { proxy, database } = await doubtful();
      const world = await jobsWorld(engine, { database });
      const { id } = await world.submit({ maxAttempts });
      // The claim itself is confirmed.
      proxy.lose((n) => n > 1 && n % 2 === 0);

      await world.attempt(id, completed({ words: 2 }));

      // The last attempt records that it begins.
      expect(proxy.lost).toBe(maxAttempts === 1 ? 2 : 1);
      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1, epoch: 1 });
      expect(world.pool.runs).toHaveLength(1);
      await expectConsistent(database);
    });
  });

  test('a claim of another process is left to it', async () => {
    const { database } = await doubtful();
    const world = await jobsWorld(engine, { database });
    const { id } = await world.submit();
    const claim = { now: world.clock.now(), leaseUntil: world.clock.now() + leaseMs };
    await database.write((tx) => claimJobs(tx, [id], { by: 1, ...claim }));

    expect(await findUnbegunJobs(database.read, [id], 2)).toEqual([]);
    expect(await findUnbegunJobs(database.read, [id], 1)).toMatchObject([{ id, epoch: 1 }]);
  });

  /** Lets a run do the same again and again, each time without the confirmation of another commit. */
  async function losingEach(act: (run: ScriptedRun, world: JobsWorld, id: string) => unknown) {
    const { proxy, database } = await doubtful();
    const world = await jobsWorld(engine, { database });
    const results: unknown[] = [];
    let commits = 0;
    // First without a fault, to know how many commits there are.
    for (let lost = 0; lost <= commits; lost++) {
      const { id } = await world.submit({ maxAttempts: 1 });
      const { run, ended } = await world.begin(id);
      proxy.lose((n) => n === lost);
      const result = await act(run, world, id);
      if (lost === 0) ({ commits } = proxy);
      else expect(proxy.lost, `lost answers of commit ${lost}`).toBe(1);
      proxy.lose(() => false);
      run.end(completed());
      await ended;
      const steps = await database.read.kysely
        .selectFrom('job_steps')
        .select(['n', 'kind', 'name', 'status', 'error'])
        .where('job_id', '=', id)
        .orderBy('n')
        .execute();
      const job = await world.row(id);
      const { status, attempt, error } = job;
      const events = (await world.events(job)).map(({ type }) => type);
      results.push({ result, steps, events, job: { status, attempt, error } });
    }
    expect(commits).toBeGreaterThan(1);
    for (const one of results) expect(one).toEqual(results[0]);
    expect(results[0]).toMatchObject({ job: { status: 'completed', attempt: 1, error: null } });
  }

  /** Follows a job; `last` is the status of the last event that reached the follower. */
  function follow({ stream }: JobsWorld, id: string) {
    const following = { last: '', hasEnded: false };
    const read = async () => {
      for await (const { type, data } of stream(id))
        if (type === 'status') following.last = data.status;
      following.hasEnded = true;
    };
    const ended = read();
    return Object.assign(following, { ended });
  }

  const followed = (following: { last: string }, status: string) =>
    waitFor(() => following.last === status, { describe: `a follower gets ${status}` });

  test('the end of a run reaches those who follow it, and is counted once', async () => {
    const { proxy, database } = await doubtful();
    const world = await jobsWorld(engine, { database });
    const { id } = await world.submit();
    const left: string[] = [];
    world.context.observers.add({ left: (_, how) => left.push(how) });
    const { run, ended } = await world.begin(id);
    const following = follow(world, id);
    await followed(following, 'active');
    loseFirst(proxy, /update "jobs"/);

    run.end(completed());
    await ended;

    await followed(following, 'completed');
    await following.ended;
    expect(left).toEqual(['unconfirmed']);
    expect(proxy.lost).toBe(1);
    expect(world.observed).toMatchObject([{ jobId: id, status: 'completed' }]);
  });

  test('the end of a run that is not on record is counted once, when it is', async () => {
    const { proxy, database } = await doubtful();
    const world = await jobsWorld(engine, { database });
    const { id } = await world.submit();
    const { run, ended } = await world.begin(id);
    // The repeat is confirmed, and the first one was not even committed.
    proxy.refuse((n) => n === 1, /update "jobs"/);

    run.end(completed());
    await ended;

    expect(proxy.lost).toBe(1);
    expect(world.observed).toMatchObject([{ jobId: id, status: 'completed' }]);
    expect(await world.row(id)).toMatchObject({ status: 'completed' });
  });

  test('a lost attempt reaches those who follow its job, too', async () => {
    const { proxy, database } = await doubtful();
    const world = await jobsWorld(engine, { database });
    const { id } = await world.submit({ maxAttempts: 1 });
    await world.begin(id);
    // The first pass of a process corrects times after the clock was set back.
    await world.recovery.sweep();
    const following = follow(world, id);
    await followed(following, 'active');
    world.clock.advance(leaseMs + 1);
    loseFirst(proxy, /update "jobs"/);

    // Of another process: this one would renew the lease.
    await world.recovery.sweep();
    await world.recovery.sweep();

    await followed(following, 'failed');
    expect(proxy.lost).toBe(1);
  });

  test('a delivery that is claimed is sent at once, as its first attempt', async () => {
    const { proxy, database } = await doubtful();
    const world = await webhooksWorld(engine, { database });
    const webhook = await world.webhook();
    await world.happen();
    loseFirst(proxy, /update "webhook_deliveries"/);

    await world.deliver();

    expect(proxy.lost).toBe(1);
    expect(world.sent).toHaveLength(1);
    expect(await world.deliveries(webhook)).toMatchObject([
      { status: 'delivered', attempts: 1, lost: 0, epoch: 2 },
    ]);
    const { counted, there } = await countsOf(database);
    expect(counted).toEqual(there);
  });

  describe('whichever commit of a run is not confirmed', () => {
    test('its steps and waits are on record once, and it gets what it would have got', async () => {
      await losingEach(async (run, world) => {
        const { clock } = world;
        const step = { kind: 'step', name: 'reserve', nth: 1, digest: '' };
        const begun = await run.ask('begin-step', step);
        await run.ask('end-step', { step: 1, output: { a: 1 } });
        const sleep = { kind: 'sleep', nth: 1 };
        const sleeping = run.ask('wait', { ...sleep, name: 'pause', ms: minute });
        await waitFor(() => run.suspensions > 0, { describe: 'the run is to be unloaded' });
        clock.advance(2 * minute);
        await watchRuns(world);
        const slept = await sleeping;
        const instant = await run.ask('wait', { ...sleep, name: 'none', ms: 0 });
        return [begun, typeof slept, typeof instant];
      });
    });

    test('an approval is asked for once, and its decision counts', async () => {
      await losingEach(async (run, world, id) => {
        const { clock, database } = world;
        const waitEnds = new WaitEnds(world.context, world.running);
        const approvals = new Approvals(contextOf(world), waitEnds);
        const ask = { title: 'Ship?', details: {}, timeoutMs: 10 * minute };
        const waiting = run.ask('wait', { kind: 'approval', name: 'ship', nth: 1, ...ask });
        await waitFor(() => run.suspensions > 0, { describe: 'the run is to be unloaded' });
        const [asked, ...others] = await database.read.kysely
          .selectFrom('approvals')
          .select('id')
          .where('job_id', '=', id)
          .execute();
        expect(others).toEqual([]);
        const by = { kind: 'api_key', id: world.caller.keyId } as const;
        const decision = { status: 'approved', by, reason: null } as const;
        clock.advance(minute);
        const decide = () => approvals.decide('default', asked?.id ?? '', decision);
        // A client that got no answer tries again, and learns that its decision counts.
        await decide().catch(() => expect(decide()).rejects.toThrow('This was approved'));
        await watchRuns(world);
        return ((await waiting) as { value: { approved: boolean } }).value.approved;
      });
    });
  });

  test('a due slot of a schedule starts one run, whichever commit is not confirmed', async () => {
    const { proxy, database } = await doubtful();
    const world = await schedulesWorld(engine, { database, freeSlots: () => 1 });
    const id = await world.schedule();
    const { clock } = world;
    const tick = new Tick(contextOf({ clock, database, log }), world);
    await tick.run();
    let commits = 0;
    // First without a fault, to know how many commits there are.
    for (let lost = 0; lost <= commits; lost++) {
      world.clock.advance(minute);
      proxy.lose((n) => n === lost);

      await tick
        .run()
        .catch((error) => expect(error).toMatchObject({ code: 'service_unavailable' }));
      await tick.run();

      if (lost === 0) ({ commits } = proxy);
      else expect(proxy.lost, `lost answers of commit ${lost}`).toBe(1);
      proxy.lose(() => false);
      const slots = await world.slots(id);
      expect(slots).toHaveLength(lost + 1);
      const jobId = slots.at(-1)?.job_id ?? '';
      const begun = world.begun.find((job) => job.id === jobId);
      if (begun === undefined) {
        await givenBack(world, jobId);
        await world.attempt(jobId, completed());
      } else {
        const ended = world.performer.performAccepted(begun);
        (await world.pool.begun(jobId, ended))?.end(completed());
        await ended;
      }
      expect(await world.row(jobId)).toMatchObject({ status: 'completed', attempt: 1 });
    }
    expect(commits).toBeGreaterThan(0);
    expect(await database.read.kysely.selectFrom('jobs').select('id').execute()).toHaveLength(
      commits + 1,
    );
    await expectConsistent(database);
  });

  test('what a run reports is recorded once, and nothing is left out', async () => {
    const { proxy, database } = await doubtful();
    const world = await jobsWorld(engine, { database, freeSlots: () => 1 });
    const { id } = await world.submit();
    const job = world.begun.find((one) => one.id === id);
    if (job === undefined) throw new Error('It was not claimed.');
    const errors: unknown[] = [];
    const log = { error: (fields: unknown) => errors.push(fields) } as unknown as Logger;
    const stream = new Reports({ ...world.context, log }, world.feed).open(job);
    loseFirst(proxy);

    stream.add({ type: 'log', data: { message: 'one' } });
    await stream.flushed();
    stream.add({ type: 'log', data: { message: 'two' } });
    await stream.flushed();

    expect(proxy.lost).toBe(1);
    expect(errors).toEqual([]);
    const rows = await database.read.kysely
      .selectFrom('job_events')
      .select(['n', 'type'])
      .where('job_id', '=', id)
      .orderBy('n')
      .execute();
    expect(rows).toEqual([
      { n: 1, type: 'log' },
      { n: 2, type: 'log' },
    ]);
  });
});
