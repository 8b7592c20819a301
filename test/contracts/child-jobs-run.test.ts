/** Child jobs as the run of their parent sees them: started once, and waited for over all its attempts. */
import { describe, expect, test } from 'vitest';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import {
  completed,
  failed,
  type JobsWorld,
  jobsWorld,
  leaseMs,
  type Worker,
} from '../support/jobs-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { waitFor } from '../support/wait-for.ts';

const waiting: RunOutcome = { kind: 'waiting' };
const echo = 'test/v1.0/echo';

/** Asks for a child as `ctx.run` does; resolves when its end is told. */
function runChild(run: ScriptedRun, nth = 0, input: unknown = { nth }): Promise<unknown> {
  const answer = run.ask('wait', { kind: 'run', name: 'letter', nth, skill: echo, input });
  // A run that is unloaded hears nothing more.
  answer.catch(() => {});
  return answer;
}

const childrenOf = async ({ database }: JobsWorld, jobId: string) => {
  const jobs = database.read.kysely.selectFrom('jobs').selectAll();
  return jobs.where('parent_job_id', '=', jobId).orderBy('id').execute();
};

/** The only child of a job, once it has been started. */
const childOf = (world: JobsWorld, jobId: string) =>
  waitFor(
    async () => {
      const [child, other] = await childrenOf(world, jobId);
      if (other !== undefined) throw new Error('There are two children.');
      return child?.id;
    },
    { describe: 'the job has a child' },
  );

/** A step that goes on beside the wait, so that the run stays loaded. */
const beside = { kind: 'step', name: 'beside', nth: 0, digest: '' };

/** A claim of the job whose run has asked for a child and waits for it, loaded. */
async function asking(world: JobsWorld, jobId: string, worker: Worker = world, isBusy = true) {
  const { run, ended } = await worker.begin(jobId);
  if (isBusy) await run.ask('begin-step', beside);
  const answer = runChild(run);
  const child = await childOf(world, jobId);
  return { run, ended, answer, child };
}

/** Lets the run of a job be unloaded while it waits for its child; the child. */
async function unloaded(world: JobsWorld, jobId: string): Promise<string> {
  const { run, ended, child } = await asking(world, jobId, world, false);
  await waitFor(() => run.suspensions > 0, { describe: 'the run is to be unloaded' });
  run.end(waiting);
  await ended;
  expect(await world.row(jobId)).toMatchObject({ status: 'waiting' });
  return child;
}

async function untilDue({ row, clock }: JobsWorld, jobId: string): Promise<void> {
  const { run_at } = await row(jobId);
  clock.advance(Math.max(0, run_at - clock.now()));
}

describe.each(await engines())('on $name', (engine) => {
  test('a child that ends while its parent is loaded answers the run at once', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const { run, ended, answer, child } = await asking(world, id);

    await world.attempt(child, completed({ text: 'Dear Ada' }));

    expect(await answer).toEqual({ value: { text: 'Dear Ada' }, at: world.clock.now() });
    run.end(completed());
    await ended;
    expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
    await expectConsistent(world.database);
  });

  test('a child that ends while its parent waits answers the next claim', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const child = await unloaded(world, id);
    await world.attempt(child, completed('done'));
    const at = world.clock.now();

    await world.attempt(id, completed(), async (run) => {
      expect(await runChild(run)).toEqual({ value: 'done', at });
    });

    expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
    expect(await childrenOf(world, id)).toHaveLength(1);
  });

  test('a child that fails or is cancelled rejects with its code and message, also in a replay', async () => {
    const world = await jobsWorld(engine);
    for (const end of ['fail', 'cancel'] as const) {
      const { id } = await world.submit();
      const child = await unloaded(world, id);
      if (end === 'fail') await world.attempt(child, failed({ retryable: false }));
      else await world.jobs.cancel('default', child);
      const error =
        end === 'fail'
          ? { code: 'skill_execution_failed', message: 'it broke', retryable: false }
          : { code: 'cancelled', message: 'The job was cancelled', retryable: false };

      await world.attempt(id, failed(), async (run) => {
        await expect(runChild(run)).rejects.toMatchObject(error);
      });
      await untilDue(world, id);
      await world.attempt(id, completed(), async (run) => {
        await expect(runChild(run)).rejects.toMatchObject(error);
      });

      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 2 });
      expect(await childrenOf(world, id)).toHaveLength(1);
    }
  });

  test('an attempt that is tried again finds its child, although the key was revoked meanwhile', async () => {
    const world = await jobsWorld(engine);
    const { keyId } = await world.callerOf('default');
    const { id } = await world.submit({ apiKeyId: keyId });
    const { run, ended, child } = await asking(world, id);
    run.end(failed());
    await ended;
    await world.apiKeys.revoke(keyId);
    await world.attempt(child, completed('done'));
    await untilDue(world, id);

    await world.attempt(id, completed(), async (again) => {
      expect(await runChild(again)).toMatchObject({ value: 'done' });
    });

    expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 2 });
    expect(await childrenOf(world, id)).toHaveLength(1);
  });

  test('an attempt whose process died leaves one child, which the next attempt waits for', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const { child } = await asking(world, id, world.worker('dies'));
    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
    await untilDue(world, id);

    const { run, ended, answer, child: same } = await asking(world, id);
    expect(same).toBe(child);
    await world.attempt(child, completed(1));

    expect(await answer).toMatchObject({ value: 1 });
    run.end(completed());
    await ended;
    expect(await childrenOf(world, id)).toHaveLength(1);
    await expectConsistent(world.database);
  });

  test('a run of another claim than the present one starts no child', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const stale = world.worker('stale');
    const { run: late } = await stale.begin(id);
    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
    await untilDue(world, id);
    await world.begin(id);

    await expect(runChild(late)).rejects.toThrow('was given to another worker');

    expect(await childrenOf(world, id)).toEqual([]);
  });

  test('a child with another input in a repeated attempt is replay_diverged', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const child = await unloaded(world, id);
    await world.attempt(child, completed('done'));

    await world.attempt(id, completed(), async (run) => {
      await expect(runChild(run, 0, { other: true })).rejects.toThrow('letter');
    });

    const { status, error } = await world.row(id);
    expect({ status, code: JSON.parse(error ?? '{}').code }).toEqual({
      status: 'failed',
      code: 'replay_diverged',
    });
    expect(await childrenOf(world, id)).toHaveLength(1);
  });

  test('a child that ends while its parent is active, unloading or waiting is told exactly once', async () => {
    const world = await jobsWorld(engine);
    for (const moment of ['active', 'unloading', 'waiting'] as const) {
      const { id } = await world.submit();
      const { run, ended, child } = await asking(world, id, world, false);
      const inner = await world.begin(child);
      if (moment === 'active') {
        inner.run.end(completed(moment));
        await inner.ended;
        run.end(waiting);
      } else {
        await waitFor(() => run.suspensions > 0, { describe: 'the run is to be unloaded' });
        run.end(waiting);
        if (moment === 'waiting') await ended;
        inner.run.end(completed(moment));
        await inner.ended;
      }
      await ended;

      expect((await world.row(id)).due_at).toBeLessThanOrEqual(world.clock.now());
      await world.attempt(id, completed(), async (again) => {
        expect(await runChild(again)).toMatchObject({ value: moment });
      });
      expect(await world.row(id)).toMatchObject({ status: 'completed' });
    }
  });

  test('a parent that is cancelled while its child is started leaves none behind', async () => {
    const world = await jobsWorld(engine);
    for (let round = 0; round < 5; round++) {
      const { id } = await world.submit();
      const { run, ended } = await world.begin(id);
      void runChild(run);
      await world.jobs.cancel('default', id);
      run.end({ kind: 'aborted' });
      await ended;

      for (const child of await childrenOf(world, id)) {
        expect(child.status).toBe('cancelled');
      }
      expect(await world.row(id)).toMatchObject({ status: 'cancelled' });
    }
    await expectConsistent(world.database);
  });
});
