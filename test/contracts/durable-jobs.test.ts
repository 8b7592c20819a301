/** Jobs that wait, on every database: they hold nothing, are charged nothing, and go on when they are due. */
import { describe, expect, test } from 'vitest';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { endUnendedOfKey } from '../../src/core/jobs/revoked-key.ts';
import { findOldestDue, findOldestDueOf } from '../../src/core/jobs/turns/oldest-due.store.ts';
import { wokenAt } from '../../src/core/jobs/turns/waiting.store.ts';
import { countUnendedOf } from '../../src/core/jobs/unended-jobs.store.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import { expectConsistent } from '../support/consistency.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, waitEndsOf } from '../support/jobs-world.ts';

const waiting: RunOutcome = { kind: 'waiting' };
const hour = 3_600_000;

/** Records a wait, as the run that asks for it does. */
async function addWait({ database, clock }: JobsWorld, job_id: string, n: number, ms: number) {
  const at = { started_at: clock.now(), due_at: clock.now() + ms };
  const step = { kind: 'event', generation: `k${n}`, turn: 1, name: 'paid', epoch: 1 } as const;
  await database.write((tx) =>
    tx.insert('job_steps', [{ job_id, n, status: 'waiting', ...step, ...at }]),
  );
}

/** A job whose run began, waits `ms` milliseconds, and was unloaded. */
async function waitingJob(world: JobsWorld, ms = hour): Promise<string> {
  const { id } = await world.submit();
  await world.attempt(id, waiting, () => addWait(world, id, 1, ms));
  return id;
}

const stepsOf = ({ database }: JobsWorld, jobId: string) =>
  database.read.kysely
    .selectFrom('job_steps')
    .select(['n', 'status', 'error'])
    .where('job_id', '=', jobId)
    .orderBy('n')
    .execute();

const waitEnds = waitEndsOf();
const endWait = ({ database, clock }: JobsWorld, job_id: string, n = 1) =>
  database.write((tx) => waitEnds.endWaits(tx, [{ job_id, n, result: { value: 1 } }], clock.now()));

describe.each(await engines())('on $name', (engine) => {
  test('a run that waits ends its claim and not its attempt; the job is due with its first wait', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();

    await world.attempt(id, waiting, async () => {
      await addWait(world, id, 1, 2 * hour);
      await addWait(world, id, 2, hour);
      world.clock.advance(700);
    });

    expect(await world.row(id)).toMatchObject({
      status: 'waiting',
      attempt: 1,
      epoch: 1,
      active_ms: 700,
      due_at: world.clock.now() - 700 + hour,
      finished_at: null,
    });
    const counts = await countUnendedOf(world.database.read, 'default');
    expect(counts).toEqual({ queued: 0, active: 0, waiting: 1 });
    await expectConsistent(world.database);
  });

  test('a waiting job is claimed when it is due, and its attempt goes on', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);
    const before = await world.row(id);

    expect(await world.attempt(id, completed())).toBe(false);
    world.clock.advance(hour);
    const { run, ended } = await world.begin(id);

    expect(await world.row(id)).toMatchObject({
      status: 'active',
      attempt: 1,
      epoch: 2,
      started_at: before.started_at,
      resumed_at: world.clock.now(),
    });
    run.end(failed({ retryable: false }));
    await ended;
    expect(await world.row(id)).toMatchObject({ status: 'failed', attempt: 1 });
    await expectConsistent(world.database);
  });

  test('only the active time counts against the time limit, and at least a second is left', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    await world.attempt(id, waiting, async () => {
      await addWait(world, id, 1, hour);
      world.clock.advance(20_000);
    });
    world.clock.advance(hour);
    await world.attempt(id, waiting, ({ request }) => {
      expect(request.timeoutMs).toBe(40_000);
      world.clock.advance(39_500);
    });
    world.clock.advance(hour);

    const { run } = await world.begin(id);

    expect(run.request.timeoutMs).toBe(1_000);
  });

  test('a wait that ends while the run is unloaded makes the job due at once', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();

    await world.attempt(id, waiting, async () => {
      await addWait(world, id, 1, hour);
      await endWait(world, id);
    });

    expect(await world.row(id)).toMatchObject({
      status: 'waiting',
      due_at: wokenAt(world.clock.now()),
    });
    expect(world.hints.at(-1)).toMatchObject({ id, delayMs: 0 });
  });

  test('a job that was woken stays due when the clock is set back', async () => {
    const world = await jobsWorld(engine);
    const [unloaded, loaded] = [await waitingJob(world), (await world.submit()).id];
    await endWait(world, unloaded);
    await world.attempt(loaded, waiting, async () => {
      await addWait(world, loaded, 1, hour);
      await endWait(world, loaded);
    });

    world.clock.jumpTo(world.clock.now() - hour / 2);

    expect(await world.attempt(unloaded, completed())).toBe(true);
    expect(await world.attempt(loaded, completed())).toBe(true);
  });

  test('waiting jobs that are due count as due, since they were woken or their wait was over', async () => {
    const world = await jobsWorld(engine);
    const since = async () => {
      const { database, clock } = world;
      const ofQueue = await findOldestDue(database.read, 'skill-execution', clock.now());
      const ofOrganization = await findOldestDueOf(database.read, 'default', clock.now());
      const others = [
        await findOldestDue(database.read, 'scheduled-jobs', clock.now()),
        await findOldestDueOf(database.read, 'other', clock.now()),
      ];
      expect(others).toEqual([undefined, undefined]);
      expect(ofOrganization).toBe(ofQueue);
      return ofQueue;
    };
    const job = await waitingJob(world);
    const dueAt = world.clock.now() + hour;
    expect(await since()).toBeUndefined();
    world.clock.advance(2 * hour);
    expect(await since()).toBe(dueAt);

    await world.attempt(job, completed());
    const woken = await waitingJob(world);
    const wokenOn = world.clock.now();
    await endWait(world, woken);
    world.clock.advance(1_000);
    expect(await since()).toBe(wokenOn);

    await world.attempt(woken, completed());
    expect(await since()).toBeUndefined();
  });

  test('a hint is sent for a wait that ends soon; the sweep finds the others', async () => {
    const world = await jobsWorld(engine);
    const soon = await waitingJob(world, 4_000);
    expect(world.hints.at(-1)).toMatchObject({ id: soon, delayMs: 4_000 });
    world.clock.advance(4_000);
    await world.attempt(soon, completed());
    const late = await waitingJob(world, 6_000);
    world.hints.length = 0;

    world.clock.advance(5_999);
    await world.recovery.sweep();
    expect(world.hints).toEqual([]);
    world.clock.advance(1);
    await world.recovery.sweep();

    expect(world.hints).toMatchObject([{ id: late, organizationId: 'default' }]);
  });

  test('a failure after a wait is tried again with a new attempt, whose time begins anew', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);
    world.clock.advance(hour);
    await world.attempt(id, failed());
    world.clock.advance(hour);

    const { run } = await world.begin(id);

    expect(run.request).toMatchObject({ timeoutMs: 60_000, context: { attempt: 2 } });
    const now = world.clock.now();
    const row = { attempt: 2, started_at: now, resumed_at: null, active_ms: 0 };
    expect(await world.row(id)).toMatchObject(row);
  });

  test('a waiting job is cancelled at once, with its waits', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);

    expect(await world.jobs.cancel('default', id)).toMatchObject({ status: 'cancelled' });

    const [step] = await stepsOf(world, id);
    expect(step).toMatchObject({ status: 'interrupted' });
    expect(step?.error).toContain('cancelled');
    expect(await endWait(world, id)).toEqual([false]);
    expect(await world.row(id)).toMatchObject({ status: 'cancelled', due_at: null });
    await expectConsistent(world.database);
  });

  test('of an event and a cancellation exactly one ends a wait', async () => {
    const world = await jobsWorld(engine);
    for (let i = 0; i < 5; i++) {
      const id = await waitingJob(world);
      const [, [isEnded]] = await Promise.all([
        world.jobs.cancel('default', id),
        endWait(world, id),
      ]);
      const [step] = await stepsOf(world, id);
      expect(step?.status).toBe(isEnded ? 'completed' : 'interrupted');
      expect(await world.row(id)).toMatchObject({ status: 'cancelled' });
    }
  });

  test('the waiting jobs of a revoked key are cancelled', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);

    await endUnendedOfKey(world.context, world, world.caller.keyId, { cancelActive: false });

    expect(await world.row(id)).toMatchObject({ status: 'cancelled' });
  });

  test('where queued jobs are cancelled, those that wait go on, because they have begun', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);
    const { id: queued } = await world.submit();

    await world.database.write((tx) => world.settler.cancelQueued(tx, [id, queued]));

    expect(await world.row(id)).toMatchObject({ status: 'waiting' });
    expect(await world.row(queued)).toMatchObject({ status: 'cancelled' });
  });

  test('a job that is to be tried again is cancelled with the waits of its last attempt', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    await world.attempt(id, failed(), async (run) => {
      await run.ask('begin-step', { kind: 'step', name: 'a', nth: 1, digest: '' });
      await addWait(world, id, 2, hour);
    });
    expect(await world.row(id)).toMatchObject({ status: 'queued' });

    await world.jobs.cancel('default', id);

    expect(await stepsOf(world, id)).toMatchObject([
      { n: 1, status: 'interrupted' },
      { n: 2, status: 'interrupted' },
    ]);
    expect(await endWait(world, id, 2)).toEqual([false]);
    await expectConsistent(world.database);
  });

  test('a job whose skill is gone when it goes on ends with its waits', async () => {
    const world = await jobsWorld(engine);
    const { database, clock, skills } = world;
    const without = await jobsWorld(engine, { database, clock });
    const skill = { category: 'test', name: 'leaving', version: 'v1.0' };
    const texts = { displayName: '', description: '', parameters: {}, output: {} };
    await new SkillRegistry(contextOf({ database, clock })).register([{ ...skill, ...texts }]);
    await skills.refresh();
    const { id } = await world.submit({ skill });
    await world.attempt(id, waiting, async () => {
      await addWait(world, id, 1, hour);
      await addWait(world, id, 2, 2 * hour);
    });
    world.clock.advance(hour);

    await without.perform(id);

    expect(await world.row(id)).toMatchObject({ status: 'failed' });
    expect(await stepsOf(world, id)).toMatchObject([
      { n: 1, status: 'interrupted' },
      { n: 2, status: 'interrupted' },
    ]);
  });

  test('a cancellation that was requested before the run was unloaded cancels the job', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const { run, ended } = await world.begin(id);
    await addWait(world, id, 1, hour);
    await world.jobs.cancel('default', id);
    run.end(waiting);
    await ended;

    expect(await world.row(id)).toMatchObject({ status: 'cancelled' });
    await expectConsistent(world.database);
  });

  test('a clock that is set back leaves waits as they are', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);
    const { due_at } = await world.row(id);
    await world.recovery.sweep();

    world.clock.jumpTo(world.clock.now() - 10 * hour);
    await world.recovery.sweep();
    await world.recovery.sweep();

    expect(await world.row(id)).toMatchObject({ status: 'waiting', due_at });
  });

  test('its stream tells that it waits, and that it goes on', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);
    const dueAt = new Date(world.clock.now() + hour).toISOString();
    world.clock.advance(hour);
    const resumedAt = new Date(world.clock.now()).toISOString();
    await world.attempt(id, failed({ retryable: false }));

    const events = await Array.fromAsync(world.stream(id));

    expect(events.map(({ data }) => data)).toMatchObject([
      { status: 'queued' },
      { status: 'active', attempt: 1 },
      { status: 'waiting', attempt: 1, due_at: dueAt },
      { status: 'active', attempt: 1, at: resumedAt, resumed_at: resumedAt },
      { status: 'failed', attempt: 1 },
    ]);
  });

  test('lists find the jobs that wait', async () => {
    const world = await jobsWorld(engine);
    const id = await waitingJob(world);
    await world.submit();

    const page = { limit: 10, offset: 0 };
    const listed = await world.jobs.list('default', { status: 'waiting' }, page);

    expect(listed).toMatchObject({ total: 1, jobs: [{ job_id: id, status: 'waiting' }] });
  });
});
