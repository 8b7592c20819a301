/** Skills that a run calls, on every database: each call is recorded, and executed once over all attempts. */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { OpenClaim } from '../../src/core/journal/claim-writes.ts';
import { findUseOfTool, insertSteps, listSteps } from '../../src/core/journal/step-queries.ts';
import { activeStep } from '../../src/core/journal/step-rows.ts';
import { jobsOnRecord } from '../../src/core/journal/taken-over.ts';
import { contextOf } from '../support/context.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';

const call = { kind: 'skill', name: 'test/v1.0/echo', digest: 'of-the-input', nth: 1 };

const stepsOf = ({ database }: JobsWorld, jobId: string) =>
  database.read.kysely
    .selectFrom('job_steps')
    .select(['n', 'kind', 'name', 'status', 'result', 'error'])
    .where('job_id', '=', jobId)
    .orderBy('n')
    .execute();

/** Moves the clock to the job's next attempt. */
async function untilDue({ row, clock }: JobsWorld, jobId: string): Promise<void> {
  clock.advance((await row(jobId)).run_at - clock.now());
}

describe.each(await engines())('on $name', (engine) => {
  test('a call is recorded before it runs, and its output before it resolves', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run } = await world.begin(job.id);

    expect(await run.ask('begin-step', call)).toEqual({ step: 1 });
    const begun = { n: 1, kind: 'skill', name: call.name, error: null };
    expect(await stepsOf(world, job.id)).toEqual([{ ...begun, status: 'active', result: null }]);

    expect(await run.ask('end-step', { step: 1, output: { charged: 5 } })).toEqual({
      at: world.clock.now(),
    });
    const result = '{"output":{"charged":5},"said":[]}';
    expect(await stepsOf(world, job.id)).toEqual([{ ...begun, status: 'completed', result }]);
  });

  test('a resumed job takes over decisions and costs, but no patience with a provider', async () => {
    const world = await jobsWorld(engine);
    const { database, clock, jobs, caller } = world;
    const use = (job_id: string, on_record: string[]) =>
      findUseOfTool(database.read, { job_id, n: 9, name: 'test/v1.0/echo', on_record });
    const { id } = await world.submit();
    const at = { started_at: clock.now(), finished_at: clock.now() };
    const of = { job_id: id, epoch: 1, generation: 'g', parent: null, turn: 1, ...at };
    const none = { rule: null, prompt_tokens: null, completion_tokens: null, cost: null };
    const used = { ...none, prompt_tokens: 10, completion_tokens: 1, cost: 7 };
    const rule = '{"rule":1,"then":"allow"}';
    const ended = { status: 'completed' } as const;
    await world.attempt(id, failed({ retryable: false }), () =>
      database.write((tx) =>
        insertSteps(tx, [
          { ...of, ...used, ...ended, n: 1, kind: 'model', name: 'a/model' },
          { ...of, ...none, ...ended, n: 2, kind: 'tool', name: 'test/v1.0/echo', rule },
          { ...of, ...used, n: 3, kind: 'model', name: 'a/model', status: 'failed' },
          { ...of, ...none, ...ended, n: 4, kind: 'provider', name: 'a: unavailable' },
        ]),
      ),
    );

    const { job: resumed } = await jobs.retry(caller, id, true);

    const steps = await database.read.kysely
      .selectFrom('job_steps')
      .select(['n', 'kind', 'rule'])
      .where('job_id', '=', resumed.id)
      .orderBy('n')
      .execute();
    expect(steps).toEqual([
      { n: 1, kind: 'model', rule: null },
      { n: 2, kind: 'tool', rule },
    ]);
    const onRecord = jobsOnRecord(await world.row(resumed.id));
    const { calls, tokens, cost } = (await use(resumed.id, onRecord)) ?? {};
    expect([calls, tokens, cost].map(Number)).toEqual([1, 22, 14]);
  });

  test('a failed step that may be on record stays so, whatever is written beside it', async () => {
    const { database, clock, submit } = await jobsWorld(engine);
    const job = await database.read.kysely
      .selectFrom('jobs')
      .selectAll()
      .where('id', '=', (await submit()).id)
      .executeTakeFirstOrThrow();
    let isConfirmed = false;
    const doubtful: Database = Object.create(database, {
      write: {
        value: async (unit: Parameters<Database['write']>[0]) => {
          const result = await database.write(unit);
          if (!isConfirmed) throw new Error('the confirmation is lost');
          return result;
        },
      },
    });
    const claim = new OpenClaim(contextOf({ database: doubtful, clock }), job);
    claim.isHeld = async () => true;
    const failure = (n: number) => ({
      ...activeStep(job, {
        n,
        kind: 'skill',
        name: call.name,
        generation: '',
        turn: 0,
        started_at: 0,
      }),
      ...{ status: 'failed' as const, error: '{}', finished_at: 0 },
    });
    claim.failures.push(failure(1));
    await expect(claim.write(async () => {})).rejects.toThrow('the confirmation is lost');
    const [uncertain] = claim.failures.splice(0);

    isConfirmed = true;
    claim.failures.push(failure(2));
    await claim.write(async () => {});
    if (uncertain !== undefined) claim.failures.push(uncertain);
    await claim.write(async () => {});

    expect((await stepsOf({ database } as JobsWorld, job.id)).map(({ n }) => n)).toEqual([1, 2]);
  });

  test('a list of steps does not read the outputs', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run } = await world.begin(job.id);
    await run.ask('begin-step', call);
    await run.ask('end-step', { step: 1, output: 'large' });

    const { steps } = await listSteps(world.database.read, job.id, {
      ...{ limit: 10, offset: 0, showsApprovals: true },
    });

    expect(steps).toMatchObject([{ n: 1, name: call.name, status: 'completed' }]);
    expect(Object.keys(steps[0] ?? {})).not.toContain('result');
    expect(Object.keys(steps[0] ?? {})).not.toContain('memory');
  });

  test('a repeated attempt gets the recorded output, and runs only new calls', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    await world.attempt(job.id, failed(), async (run) => {
      await run.ask('begin-step', call);
      await run.ask('end-step', { step: 1, output: 'first' });
    });
    await untilDue(world, job.id);

    await world.attempt(job.id, completed(), async (run) => {
      expect(await run.ask('begin-step', call)).toMatchObject({ output: 'first' });
      expect(await run.ask('begin-step', { ...call, nth: 2 })).toEqual({ step: 2 });
      expect(await run.ask('begin-step', { ...call, digest: 'of-another' })).toEqual({ step: 3 });
      await run.ask('begin-step', { ...call, digest: 'of-a-third' });
      expect(await run.ask('begin-step', call, 4)).toEqual({ step: 5 });
    });

    const statuses = (await stepsOf(world, job.id)).map(({ status }) => status);
    expect(statuses).toEqual(['completed', ...Array(4).fill('interrupted')]);
  });

  test.each([
    ['failed', { step: 1, error: { code: 'skill_execution_failed', message: 'no' } }],
    ['interrupted', undefined],
  ])('a call that %s begins again, as the same step', async (status, end) => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    await world.attempt(job.id, failed(), async (run) => {
      await run.ask('begin-step', call);
      if (end !== undefined) await run.ask('end-step', end);
    });
    expect(await stepsOf(world, job.id)).toMatchObject([{ n: 1, status }]);
    await untilDue(world, job.id);

    await world.attempt(job.id, completed(), async (run) => {
      expect(await run.ask('begin-step', call)).toEqual({ step: 1 });
      await run.ask('end-step', { step: 1, output: 'done' });
    });

    expect(await stepsOf(world, job.id)).toMatchObject([
      { n: 1, status: 'completed', error: null },
    ]);
  });

  test('a claim that has lost its job records nothing', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    const { run } = await world.begin(job.id);
    await run.ask('begin-step', call);
    world.clock.advance(leaseMs + 1);
    await world.recovery.sweep();
    await untilDue(world, job.id);
    const other = await world.worker('other').begin(job.id);

    await expect(run.ask('end-step', { step: 1, output: 'late' })).rejects.toThrow(
      'another worker',
    );
    await expect(run.ask('begin-step', { ...call, nth: 2 })).rejects.toThrow('another worker');

    expect(await stepsOf(world, job.id)).toMatchObject([{ n: 1, status: 'interrupted' }]);
    expect(await other.run.ask('begin-step', call)).toEqual({ step: 1 });
  });

  test('memories and messages of a call are kept once, though a later attempt does not repeat it', async () => {
    const world = await jobsWorld(engine);
    const job = await world.submit();
    await world.attempt(job.id, failed(), async (run) => {
      await run.ask('begin-step', call);
      await run.ask('remember', { content: 'the sky is blue' }, 1);
      await run.ask('begin-step', call, 1);
      run.report({ type: 'message', role: 'assistant', content: 'said inside', step: 2 });
      await run.ask('end-step', { step: 2, output: null });
      await run.ask('end-step', { step: 1, output: null });
      run.report({ type: 'message', role: 'assistant', content: 'lost with its attempt' });
    });
    await untilDue(world, job.id);

    await world.attempt(job.id, completed(), async (run) => {
      expect(await run.ask('begin-step', call)).toMatchObject({ output: null });
      expect(await run.ask('recall', {})).toHaveLength(1);
    });

    const messages = await world.messages(job);
    expect(messages.map(({ content }) => content)).toEqual([
      '{"a":1}',
      'said inside',
      expect.anything(),
    ]);
    const { read } = world.database;
    expect(await read.kysely.selectFrom('memories').select('content').execute()).toEqual([
      { content: 'the sky is blue' },
    ]);
  });

  test('a call without the scope, or with an invalid form, is refused', async () => {
    const world = await jobsWorld(engine);
    const { keyId: apiKeyId } = await world.callerOf('default', ['test']);
    const { run } = await world.begin((await world.submit({ apiKeyId })).id);

    const guarded = { ...call, name: 'test/v1.0/guarded' };
    await expect(run.ask('begin-step', guarded)).rejects.toThrow('may not call test/v1.0/guarded');
    for (const payload of [null, 'x', { ...call, kind: 'model' }, { ...call, name: {} }]) {
      await expect(run.ask('begin-step', payload)).rejects.toThrow('no step');
    }
    await expect(run.ask('end-step', { step: 9, output: 1 })).rejects.toThrow('no such step');
  });
});
