/** Named steps and waits, on every database: each is on record before the run goes on, and replays from there. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { RunOutcome } from '../../src/core/executors/run.ts';
import { wokenAt } from '../../src/core/jobs/turns/waiting.store.ts';
import { engines } from '../support/databases.ts';
import {
  completed,
  failed,
  type JobsWorld,
  jobsWorld,
  leaseMs,
  waitEndsOf,
} from '../support/jobs-world.ts';
import type { ScriptedRun } from '../support/scripted-pool.ts';
import { waitFor } from '../support/wait-for.ts';

const waiting: RunOutcome = { kind: 'waiting' };
const hour = 3_600_000;
const isUnloading = { describe: 'the run to be asked to be unloaded' };
const isRecorded = { describe: 'the wait to be on record' };

const step = (name: string, more = {}) => ({ kind: 'step', name, nth: 1, digest: '', ...more });
const sleep = (name: string, ms: number, more = {}) => ({
  kind: 'sleep',
  name,
  nth: 1,
  ms,
  ...more,
});

/** Takes a step with a result, as the executor of a run does. */
async function take(run: ScriptedRun, name: string, output: unknown = name) {
  const begun = (await run.ask('begin-step', step(name))) as { step?: number };
  if (begun.step === undefined) return begun;
  return run.ask('end-step', { step: begun.step, output });
}

const failure = { code: 'skill_execution_failed', message: 'no', retryable: true };

async function fail(run: ScriptedRun, name: string) {
  const { step: n } = (await run.ask('begin-step', step(name))) as { step: number };
  await run.ask('end-step', { step: n, error: failure });
}

/** Asks for a wait that stays open. */
function waitOpen(run: ScriptedRun, payload: object): Promise<unknown> {
  const wait = run.ask('wait', payload);
  wait.catch(() => {});
  return waitFor(() => run.suspensions > 0, isUnloading);
}

const stepsOf = ({ database }: JobsWorld, jobId: string) =>
  database.read.kysely
    .selectFrom('job_steps')
    .select(['n', 'kind', 'name', 'status', 'result', 'attempt', 'seen_to', 'due_at'])
    .where('job_id', '=', jobId)
    .orderBy('n')
    .execute();

/** What `fill` replaces in a result. */
const filling = '(much)';

/** Makes the results of a job long where they are stored: sending them there takes longer than all of a test. */
function fill({ database }: JobsWorld, jobId: string, chars: number): Promise<unknown> {
  return database.write(async ({ kysely, dialect }) => {
    const isSqlite = dialect === 'sqlite';
    // The limit of ten seconds is for statements of the platform, and this one is the test's.
    if (!isSqlite) await sql`set local statement_timeout = 0`.execute(kysely);
    const spaces = isSqlite ? sql`printf('%*s', ${chars}, '')` : sql`repeat(' ', ${chars})`;
    const result = sql<string>`replace(result, ${filling}, ${spaces})`;
    await kysely.updateTable('job_steps').set({ result }).where('job_id', '=', jobId).execute();
  });
}

async function untilDue({ row, clock }: JobsWorld, jobId: string): Promise<void> {
  const { run_at, due_at, status } = await row(jobId);
  const at = status === 'waiting' ? (due_at ?? 0) : run_at;
  clock.advance(Math.max(0, at - clock.now()));
}

const waitEnds = waitEndsOf();

describe.each(await engines())('on $name', (engine) => {
  describe('a named step', () => {
    test('is on record before it runs, and its result before it resolves', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);

      expect(await run.ask('begin-step', step('reserve'))).toEqual({ step: 1 });
      const begun = { n: 1, kind: 'step', name: 'reserve' };
      expect(await stepsOf(world, id)).toMatchObject([{ ...begun, status: 'active' }]);
      const now = world.clock.now();
      expect(await run.ask('end-step', { step: 1, output: { a: 1 } })).toEqual({ at: now });
      expect(await stepsOf(world, id)).toMatchObject([
        { ...begun, status: 'completed', result: '{"output":{"a":1},"said":[]}', attempt: 1 },
      ]);
    });

    test('that completed is not run again; its result has the moment of its record', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const at = world.clock.now();
      await world.attempt(id, failed(), (run) => take(run, 'reserve', { a: 1 }));
      await untilDue(world, id);

      await world.attempt(id, completed(), async (run) => {
        expect(await run.ask('begin-step', step('reserve'))).toEqual({ output: { a: 1 }, at });
      });

      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 2 });
    });

    test('may result in nothing', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, failed(), async (run) => {
        await run.ask('begin-step', step('reserve'));
        await run.ask('end-step', { step: 1 });
      });
      await untilDue(world, id);
      const { run } = await world.begin(id);

      const answer = (await run.ask('begin-step', step('reserve'))) as { output?: unknown };

      expect(answer.output).toBeUndefined();
      expect(answer).not.toHaveProperty('step');
    });

    test('that was under way when its process was lost runs again, as the same step', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);
      await run.ask('begin-step', step('reserve'));
      world.clock.advance(leaseMs + 1);
      await world.recovery.sweep();
      await world.recovery.sweep();
      await untilDue(world, id);

      const again = await world.begin(id);

      expect(await again.run.ask('begin-step', step('reserve'))).toEqual({ step: 1 });
      expect(await stepsOf(world, id)).toMatchObject([{ n: 1, status: 'active' }]);
    });

    test('that failed runs again in a later attempt, unless the code went on after it', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, failed(), async (run) => {
        await fail(run, 'handled');
        await take(run, 'instead');
        await fail(run, 'last');
      });
      await untilDue(world, id);
      const { run } = await world.begin(id);

      expect(await run.ask('begin-step', step('handled'))).toMatchObject({ error: failure });
      expect(await take(run, 'instead')).toMatchObject({ output: 'instead' });
      expect(await run.ask('begin-step', step('last'))).toEqual({ step: 3 });
    });

    test('that failed stays failed when the attempt goes on after a wait', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, waiting, async (run) => {
        await Promise.all([fail(run, 'handled'), waitOpen(run, sleep('nap', hour))]);
      });
      await untilDue(world, id);
      const { run } = await world.begin(id);

      expect(await run.ask('begin-step', step('handled'))).toMatchObject({ error: failure });
    });

    test('that failed because its run was being stopped runs again', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run, ended } = await world.begin(id);
      await run.ask('begin-step', step('upload'));
      world.running.handBack();
      await run.ask('end-step', { step: 1, error: failure }).catch(() => {});
      run.end({ kind: 'aborted' });
      await ended;

      const again = await world.worker('next').begin(id);

      expect(again.run.request.context.attempt).toBe(1);
      expect(await again.run.ask('begin-step', step('upload'))).toEqual({ step: 1 });
    });

    test('a called skill that failed stays failed when the attempt goes on after a wait', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const call = { kind: 'skill', name: 'test/v1.0/echo', digest: 'd', nth: 1 };
      await world.attempt(id, waiting, async (run) => {
        await run.ask('begin-step', call);
        await run.ask('end-step', { step: 1, error: failure });
        await waitOpen(run, sleep('nap', hour));
      });
      await untilDue(world, id);

      await world.attempt(id, failed(), async (run) => {
        expect(await run.ask('begin-step', call)).toMatchObject({ error: failure });
      });
      await untilDue(world, id);
      const { run } = await world.begin(id);

      expect(await run.ask('begin-step', call)).toEqual({ step: 1 });
    });

    test('that is a called skill gives its result also when the skill may not be called any more', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const call = { kind: 'skill', name: 'test/v1.0/other', digest: 'd', nth: 1 };
      await world.attempt(id, waiting, async (run) => {
        await run.ask('begin-step', call);
        await run.ask('end-step', { step: 1, output: 'once' });
        await waitOpen(run, sleep('nap', hour));
      });
      await untilDue(world, id);
      await world.skills.setDeprecated('test', 'v1.0', 'other', true);
      const { run } = await world.begin(id);

      expect(await run.ask('begin-step', call)).toMatchObject({ output: 'once' });
      const another = run.ask('begin-step', { ...call, nth: 2 });
      await expect(another).rejects.toThrow('may not call test/v1.0/other');
    });

    test('has messages, which a replay adds again', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();
      await world.attempt(job.id, failed(), async (run) => {
        await run.ask('begin-step', step('tell'));
        run.report({ type: 'message', role: 'assistant', content: 'done', step: 1 });
        await run.ask('end-step', { step: 1, output: 1 });
      });
      await untilDue(world, job.id);

      await world.attempt(job.id, completed(), (run) => take(run, 'tell'));

      const contents = (await world.messages(job)).map(({ content }) => content);
      expect(contents.filter((content) => content === 'done')).toHaveLength(1);
    });
  });

  describe('a wait', () => {
    test('is on record with its deadline; the run is asked to be unloaded, and the job waits', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const dueAt = world.clock.now() + hour;

      await world.attempt(id, waiting, (run) => waitOpen(run, sleep('nap', hour)));

      expect(await stepsOf(world, id)).toMatchObject([
        { n: 1, kind: 'sleep', name: 'nap', status: 'waiting', due_at: dueAt },
      ]);
      expect(await world.row(id)).toMatchObject({ status: 'waiting', due_at: dueAt, attempt: 1 });
    });

    test('whose deadline has passed gives its result when the run goes on, once and for all', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, waiting, (run) => waitOpen(run, sleep('nap', hour)));
      await untilDue(world, id);
      const at = world.clock.now();

      await world.attempt(id, failed(), async (run) => {
        expect(await run.ask('wait', sleep('nap', hour))).toEqual({ value: null, at });
        expect(run.suspensions).toBe(0);
      });
      await untilDue(world, id);

      await world.attempt(id, completed(), async (run) => {
        expect(await run.ask('wait', sleep('nap', hour))).toEqual({ value: null, at });
      });
      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 2 });
    });

    test('that ends from outside while its run is loaded is answered at once', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);
      await run.ask('begin-step', step('long'));
      const wait = run.ask('wait', sleep('nap', hour));
      await waitFor(async () => (await stepsOf(world, id)).length === 2, isRecorded);
      expect(run.suspensions).toBe(0);

      const end = { job_id: id, n: 2, result: { value: { paid: 1 } } };
      await world.database.write((tx) => waitEnds.endWaits(tx, [end], world.clock.now()));
      await world.running.answerWaits();

      expect(await wait).toEqual({ value: { paid: 1 }, at: world.clock.now() });
    });

    test('whose deadline passes while its run is loaded is answered too', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);
      await run.ask('begin-step', step('long'));
      const wait = run.ask('wait', sleep('nap', 1_000));
      await waitFor(async () => (await stepsOf(world, id)).length === 2, isRecorded);

      world.clock.advance(1_000);
      await world.running.answerWaits();

      expect(await wait).toEqual({ value: null, at: world.clock.now() });
    });

    test('whose look fails is answered by a later one, and the log says why', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const rename = (from: string, to: string) =>
        world.database.write((tx) => tx.kysely.schema.alterTable(from).renameTo(to).execute());
      const { run } = await world.begin(id);
      const wait = run.ask('wait', sleep('nap', 1_000));
      await waitOpen(run, sleep('long', hour));
      await rename('job_steps', 'gone');
      world.clock.advance(1_000);
      await world.running.answerWaits();
      await rename('gone', 'job_steps');

      await world.running.answerWaits();

      expect(await wait).toMatchObject({ value: null });
      const said = world.warnings.filter((line) => line.includes('could not be read'));
      expect(said).toHaveLength(1);
    });

    test('that ended after the run was asked to be unloaded makes the job due at once', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, waiting, async (run) => {
        void run.ask('wait', sleep('short', 1_000));
        await waitOpen(run, sleep('long', hour));
        world.clock.advance(1_000);
        await world.running.answerWaits();
      });

      expect(await world.row(id)).toMatchObject({
        status: 'waiting',
        due_at: wokenAt(world.clock.now()),
      });
    });

    test('of no time at all is answered without unloading the run', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);

      const at = world.clock.now();
      expect(await run.ask('wait', sleep('nap', 0))).toEqual({ value: null, at });
      expect(run.suspensions).toBe(0);
    });

    // 33 MiB go to the database and back, which takes a busy machine a minute.
    test('counts the bytes of its result once, however often it is replayed', {
      timeout: 240_000,
    }, async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, waiting, (run) => waitOpen(run, sleep('nap', hour)));
      const end = { job_id: id, n: 1, result: { value: filling } };
      await world.database.write((tx) => waitEnds.endWaits(tx, [end], world.clock.now()));
      // More than half of what the results of a job may have.
      await fill(world, id, 33 * 2 ** 20);
      const { run } = await world.begin(id);

      const answer = (await run.ask('wait', sleep('nap', hour))) as { value: string };
      expect(answer.value).toHaveLength(33 * 2 ** 20);
    });

    test('inside a step is refused with the name of the wait', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);
      await run.ask('begin-step', step('outer'));

      const refused = run.ask('wait', sleep('nap', hour), 1);

      await expect(refused).rejects.toThrow('a step may not wait: move "nap" out');
    });

    test('of a called skill unloads the run when nothing else is under way', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const call = { kind: 'skill', name: 'test/v1.0/echo', digest: 'd', nth: 1 };
      await world.attempt(id, waiting, async (run) => {
        await run.ask('begin-step', call);
        void run.ask('wait', sleep('nap', hour), 1);
        await waitFor(() => run.suspensions > 0, isUnloading);
      });
      expect(await stepsOf(world, id)).toMatchObject([{ status: 'active' }, { status: 'waiting' }]);
      await untilDue(world, id);

      await world.attempt(id, completed(), async (run) => {
        expect(await run.ask('begin-step', call)).toEqual({ step: 1 });
        expect(await run.ask('wait', sleep('nap', hour), 1)).toMatchObject({ value: null });
        await run.ask('end-step', { step: 1, output: 1 });
      });
      expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
    });

    test.each([
      ['longer than 365 days', { ms: 366 * 24 * hour }, '365 days at most'],
      ['without a time', { ms: 'soon' }, 'a time in milliseconds'],
      ['of an unknown kind', { kind: 'miracle' }, 'no wait that a run may ask for'],
    ])('%s is refused', async (_, more, message) => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const { run } = await world.begin(id);

      await expect(run.ask('wait', sleep('nap', 1, more))).rejects.toThrow(message);
    });
  });

  describe('code that no longer fits its record', () => {
    /** The job's error after a second attempt that does `act` and returns. */
    async function errorAfter(
      first: (run: ScriptedRun) => unknown,
      act: (run: ScriptedRun) => unknown,
    ) {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, failed(), first);
      await untilDue(world, id);
      await world.attempt(id, completed(), act);
      const { status, attempt, error } = await world.row(id);
      return {
        status,
        attempt,
        ...(JSON.parse(error ?? '{}') as { code: string; message: string }),
      };
    }
    const diverged = { status: 'failed', attempt: 2, code: 'replay_diverged' };

    test('asks for another kind: the job fails, even if the code goes on', async () => {
      const error = await errorAfter(
        (run) => take(run, 'a'),
        (run) => run.ask('wait', sleep('a', 0)).catch(() => {}),
      );

      expect(error).toMatchObject(diverged);
      expect(error.message).toContain(
        '"a", occurrence 1 (step 1 of the job): it is on record as a step, and the code asks for a sleep',
      );
    });

    test('asks with other input', async () => {
      const error = await errorAfter(
        (run) => run.ask('wait', sleep('a', 0)),
        (run) => run.ask('wait', sleep('a', 1)).catch(() => {}),
      );

      expect(error).toMatchObject(diverged);
      expect(error.message).toContain(
        '"a", occurrence 1 (step 1 of the job): the code asks for it with other input: its input differs in ms',
      );
    });

    test('returns without having asked for all that is on record', async () => {
      const error = await errorAfter(
        async (run) => {
          await take(run, 'a');
          await take(run, 'b');
        },
        (run) => take(run, 'a'),
      );

      expect(error).toMatchObject(diverged);
      expect(error.message).toContain(
        '"b", occurrence 1 (step 2 of the job): a step is on record, and the code did not ask for it',
      );
    });

    test('returns without having asked for anything', async () => {
      expect(
        await errorAfter(
          (run) => take(run, 'a'),
          () => {},
        ),
      ).toMatchObject(diverged);
    });

    describe('in its calls of skills', () => {
      const call = (digest: string) => ({ kind: 'skill', name: 'test/v1.0/echo', digest, nth: 1 });
      /** A job whose run has called the skill and waits. */
      async function calledAndWaiting() {
        const world = await jobsWorld(engine);
        const { id } = await world.submit();
        await world.attempt(id, waiting, async (run) => {
          await run.ask('begin-step', call('d1'));
          await run.ask('end-step', { step: 1, output: 1 });
          await waitOpen(run, sleep('nap', hour));
        });
        await untilDue(world, id);
        return { world, id };
      }
      const nap = (run: ScriptedRun) => run.ask('wait', sleep('nap', hour));

      test('returns without having made one that is on record', async () => {
        const { world, id } = await calledAndWaiting();

        await world.attempt(id, completed(), nap);

        const { status, error } = await world.row(id);
        expect({ status, ...JSON.parse(error ?? '{}') }).toMatchObject({
          ...{ status: 'failed', code: 'replay_diverged' },
          message: expect.stringContaining('"test/v1.0/echo", occurrence 1 (step 1 of the job)'),
        });
      });

      test('calls with other input, and returns', async () => {
        const { world, id } = await calledAndWaiting();

        await world.attempt(id, completed(), (run) => run.ask('begin-step', call('d2')));

        const { status, error } = await world.row(id);
        expect({ status, ...JSON.parse(error ?? '{}') }).toMatchObject({
          ...{ status: 'failed', code: 'replay_diverged' },
          message: expect.stringContaining('the code did not ask for it with the same input'),
        });
      });

      test.each([
        ['after a wait', waiting],
        ['after it was handed back', { kind: 'aborted' }],
      ] as const)('may call beside those on record %s', async (_, outcome) => {
        const world = await jobsWorld(engine);
        const { id } = await world.submit();
        const answer = (run: ScriptedRun, n: number) => run.ask('end-step', { step: n, output: 1 });
        await world.attempt(id, outcome, async (run) => {
          for (const n of [1, 2]) {
            await run.ask('begin-step', call(`d${n}`));
            await answer(run, n);
          }
          await waitOpen(run, sleep('nap', hour));
        });
        await untilDue(world, id);

        await world.attempt(id, completed(), async (run) => {
          expect(await run.ask('begin-step', call('beside'))).toEqual({ step: 4 });
          const answered = answer(run, 4);
          for (const n of [1, 2]) {
            expect(await run.ask('begin-step', call(`d${n}`))).toMatchObject({ output: 1 });
          }
          world.clock.advance(hour);
          await Promise.all([answered, nap(run)]);
        });

        expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
      });

      test('may make other ones within a named step that runs again', async () => {
        const world = await jobsWorld(engine);
        const { id } = await world.submit();
        const inStep = (run: ScriptedRun, digest: string) => run.ask('begin-step', call(digest), 2);
        await world.attempt(id, { kind: 'aborted' }, async (run) => {
          await run.ask('wait', sleep('nap', 0));
          await run.ask('begin-step', step('order'));
          for (const [n, digest] of [
            [3, 'equal'],
            [4, 'before'],
          ] as const) {
            expect(await inStep(run, digest)).toEqual({ step: n });
            await run.ask('end-step', { step: n, output: digest });
          }
        });
        await untilDue(world, id);

        await world.attempt(id, completed(), async (run) => {
          await run.ask('wait', sleep('nap', 0));
          expect(await run.ask('begin-step', step('order'))).toEqual({ step: 2 });
          expect(await inStep(run, 'equal')).toMatchObject({ output: 'equal' });
          expect(await inStep(run, 'now')).toEqual({ step: 5 });
          await run.ask('end-step', { step: 5, output: null });
          await run.ask('end-step', { step: 2, output: null });
        });

        expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 1 });
      });

      test('may make other ones in a new attempt', async () => {
        const { world, id } = await calledAndWaiting();
        await world.attempt(id, failed(), async (run) => {
          await run.ask('begin-step', call('d1'));
          await nap(run);
        });
        await untilDue(world, id);

        await world.attempt(id, completed(), async (run) => {
          await nap(run);
          expect(await run.ask('begin-step', call('d2'))).toMatchObject({ step: 3 });
          await run.ask('end-step', { step: 3, output: 1 });
        });

        expect(await world.row(id)).toMatchObject({ status: 'completed', attempt: 2 });
      });
    });

    test('a step that did not end is not missed', async () => {
      const result = await errorAfter(
        (run) => run.ask('begin-step', step('a')),
        () => {},
      );

      expect(result.status).toBe('completed');
    });
  });

  describe('a bound', () => {
    test('of one result: 1 MiB of JSON', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();

      await world.attempt(id, completed(), async (run) => {
        const large = 'x'.repeat(1024 * 1024);
        await expect(take(run, 'large', large)).rejects.toThrow('may have 1024 KiB');
        expect(run.aborted).toContain('1024 KiB');
      });

      const { status, error } = await world.row(id);
      expect(status).toBe('failed');
      expect(error).toContain('the result of a step may have 1024 KiB of JSON');
    });

    test('of all results: 64 MiB, those of earlier claims too', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, failed(), (run) => take(run, 'first', filling));
      await fill(world, id, 64 * 2 ** 20 - 100);
      await untilDue(world, id);

      await world.attempt(id, completed(), (run) =>
        take(run, 'next', 'y'.repeat(200)).catch(() => {}),
      );

      expect((await world.row(id)).error).toContain('64 MiB');
    });

    test('of steps: 10,000 a job', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      await world.attempt(id, failed(), (run) => take(run, 'first'));
      await world.database.write((tx) =>
        tx.kysely.updateTable('job_steps').set({ n: 10_000 }).where('job_id', '=', id).execute(),
      );
      await untilDue(world, id);

      await world.attempt(id, completed(), async (run) => {
        await take(run, 'first');
        await take(run, 'next').catch(() => {});
      });

      const { status, error } = await world.row(id);
      expect(status).toBe('failed');
      expect(error).toContain('a job may take 10000 steps');
    });
  });

  test('a late writer of an older claim changes nothing', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const late = await world.begin(id);
    await late.run.ask('begin-step', step('a'));
    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
    await world.recovery.sweep();
    await untilDue(world, id);
    const { run } = await world.begin(id);
    await run.ask('begin-step', step('a'));
    await run.ask('end-step', { step: 1, output: 'new' });

    const lost = 'the job was given to another worker';
    await expect(late.run.ask('end-step', { step: 1, output: 'old' })).rejects.toThrow(lost);
    await expect(late.run.ask('begin-step', step('b'))).rejects.toThrow(lost);
    await expect(late.run.ask('wait', sleep('c', 0))).rejects.toThrow(lost);

    expect(await stepsOf(world, id)).toMatchObject([
      { n: 1, result: '{"output":"new","said":[]}' },
    ]);
  });

  test('what a run reports while it repeats its record is not told again', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const log = (run: ScriptedRun, message: string) => run.report({ type: 'log', message, at: 0 });
    await world.attempt(id, waiting, async (run) => {
      log(run, 'first');
      await take(run, 'a');
      log(run, 'second');
      await waitOpen(run, sleep('nap', hour));
    });
    await untilDue(world, id);
    await world.attempt(id, completed(), async (run) => {
      log(run, 'first');
      await take(run, 'a');
      log(run, 'second');
      await run.ask('wait', sleep('nap', hour));
      log(run, 'third');
    });

    const events = await Array.fromAsync(world.stream(id));

    const logs = events.flatMap(({ type, data }) => (type === 'log' ? [data.message] : []));
    expect(logs).toEqual(['first', 'second', 'third']);
  });

  test('the open waits of a run that completes end with the job', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();

    await world.attempt(id, completed(), (run) => waitOpen(run, sleep('nap', hour)));

    expect(await world.row(id)).toMatchObject({ status: 'completed' });
    expect(await stepsOf(world, id)).toMatchObject([{ status: 'interrupted' }]);
  });

  test('a wait stays open over a failed attempt, with its deadline', async () => {
    const world = await jobsWorld(engine);
    const { id } = await world.submit();
    const dueAt = world.clock.now() + hour;
    await world.attempt(id, failed(), (run) => waitOpen(run, sleep('nap', hour)));
    await untilDue(world, id);

    await world.attempt(id, waiting, (run) => waitOpen(run, sleep('nap', hour)));

    expect(await world.row(id)).toMatchObject({ status: 'waiting', attempt: 2, due_at: dueAt });
    expect(await stepsOf(world, id)).toHaveLength(1);
  });

  describe('a race', () => {
    /** Begins the step and the wait, then plays the rest; what the run is told when it is loaded again. */
    async function replayed(
      wait: object,
      play: (world: JobsWorld, run: ScriptedRun, told: string[]) => Promise<void>,
    ) {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const [live, again]: [string[], string[]] = [[], []];
      await world.attempt(id, waiting, async (run) => {
        expect(await run.ask('begin-step', step('work'))).toEqual({ step: 1 });
        const asked = run.ask('wait', wait).then(() => live.push('wait'));
        asked.catch(() => {});
        await waitFor(async () => (await stepsOf(world, id)).length > 1, isRecorded);
        await play(world, run, live);
        await take(run, 'after');
        await waitOpen(run, sleep('long', hour));
      });
      await untilDue(world, id);
      world.clock.advance(hour);
      await world.attempt(id, completed(), async (run) => {
        const asked = [
          run.ask('wait', wait).then(() => again.push('wait')),
          run.ask('begin-step', step('work')).then(() => again.push('work')),
        ];
        await Promise.race(asked);
        expect(await take(run, 'after')).toMatchObject({ output: 'after' });
        await Promise.all([...asked, run.ask('wait', sleep('long', hour))]);
      });
      expect(await world.row(id)).toMatchObject({ status: 'completed' });
      return { live, again };
    }

    const endWork = async (run: ScriptedRun, live: string[]) => {
      await run.ask('end-step', { step: 1, output: null });
      live.push('work');
    };

    test('has the winner that the run was told first, also if the event had come before', async () => {
      const { live, again } = await replayed(sleep('paid', hour), async (world, run, told) => {
        const [job] = await world.database.read.kysely.selectFrom('jobs').select('id').execute();
        const end = { job_id: job?.id ?? '', n: 2, result: { value: 1 } };
        await world.database.write((tx) => waitEnds.endWaits(tx, [end], world.clock.now()));
        world.clock.advance(1);
        await endWork(run, told);
      });

      expect(live).toEqual(['work']);
      expect(again).toEqual(['work', 'wait']);
    });

    test('of two waits has its winner on record also if the run writes no more before it is unloaded', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const waits = [sleep('first', hour), sleep('second', 2 * hour)];
      await world.attempt(id, waiting, async (run) => {
        for (const wait of waits) await waitOpen(run, wait);
      });
      await untilDue(world, id);

      await world.attempt(id, waiting, async (run) => {
        const before = run.suspensions;
        const [first, second] = waits.map((wait) => run.ask('wait', wait));
        second?.catch(() => {});
        expect(await first).toMatchObject({ value: null });
        await waitFor(() => run.suspensions > before, isUnloading);
      });

      const places = await world.database.read.kysely
        .selectFrom('job_steps')
        .select(['name', 'told'])
        .where('job_id', '=', id)
        .orderBy('n')
        .execute();
      expect(places).toEqual([
        { name: 'first', told: 1 },
        { name: 'second', told: null },
      ]);
    });

    test.each([
      ['is handed back', { kind: 'aborted' }],
      ['fails', failed()],
    ] as const)(
      'has the same winner when the run %s before the slower step ended, which then ends at once',
      async (_, outcome) => {
        const world = await jobsWorld(engine);
        const { id } = await world.submit();
        const chain = Array.from({ length: 20 }, (_, i) => `link ${i}`);
        const race = (run: ScriptedRun, told: string[]) =>
          Promise.race([
            take(run, 'slow').then(() => told.push('slow')),
            (async () => {
              for (const name of chain) await take(run, name);
              told.push('chain');
            })(),
          ]);
        await world.attempt(id, outcome, async (run) => {
          await run.ask('begin-step', step('slow'));
          for (const name of chain) await take(run, name);
          await take(run, 'pay chain');
        });
        await untilDue(world, id);

        const told: string[] = [];
        const { run } = await world.begin(id);
        await race(run, told);

        expect(told).toEqual(['chain']);
        await take(run, 'pay chain');
        await waitFor(() => told.length === 2, { describe: 'the slower step' });
      },
    );

    test('has its order anew where a called skill that had failed ends in a new attempt', async () => {
      const world = await jobsWorld(engine);
      const { id } = await world.submit();
      const call = { kind: 'skill', name: 'test/v1.0/echo', digest: 'd', nth: 1 };
      const act = async (run: ScriptedRun) => {
        await run.ask('begin-step', call);
        await run.ask('end-step', { step: 1, error: failure });
        await take(run, 'instead');
      };
      await world.attempt(id, failed(), act);
      await untilDue(world, id);
      await world.attempt(id, failed(), async (run) => {
        await act(run);
        await take(run, 'next');
      });

      const steps = await world.database.read.kysely
        .selectFrom('job_steps')
        .select(['name', 'told'])
        .where('job_id', '=', id)
        .orderBy('told')
        .execute();
      expect(steps.map(({ name }) => name)).toEqual(['test/v1.0/echo', 'instead', 'next']);
    });

    test.each([0, -50])('has the same winner if the clock goes on by %d ms', async (ms) => {
      const { live, again } = await replayed(sleep('nap', 0), async (world, run, told) => {
        await waitFor(() => told.length > 0, { describe: 'the end of the wait' });
        world.clock.advance(ms);
        await endWork(run, told);
      });

      expect(live).toEqual(['wait', 'work']);
      expect(again).toEqual(live);
    });
  });
});
