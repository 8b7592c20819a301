/** Perform and settle: from an accepted job to its end (docs/decisions/jobs.md, docs/decisions/conversations.md). */
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/adapters/database/database.ts';
import { SkillRegistry } from '../../src/core/skills/registry.ts';
import { whileThere } from '../support/broken-database.ts';
import { expectConsistent } from '../support/consistency.ts';
import { engines } from '../support/databases.ts';
import { completed, failed, type JobsWorld, jobsWorld, leaseMs } from '../support/jobs-world.ts';

const scheduled = { triggerType: 'scheduled', maxAttempts: 4 } as const;
const errorOf = async ({ row }: JobsWorld, id: string) =>
  JSON.parse((await row(id)).error ?? 'null');

const newSkill = { category: 'test', name: 'new', version: 'v1.0' };
const newName = 'test/v1.0/new';

/** What another process does that has loaded `loaded` and nothing else of what there is. */
async function registerNew(world: JobsWorld, loaded: readonly (typeof newSkill)[]): Promise<void> {
  const elsewhere = new Set(
    world.skills
      .list('default')
      .map(({ category, version, name }) => `${category}/${version}/${name}`),
  );
  await new SkillRegistry(world.context).register(
    loaded.map((one) => ({ ...one, displayName: '', description: '', parameters: {}, output: {} })),
    elsewhere,
  );
}

/** Runs the job's attempts until it is final, each as soon as it is due; the waits between them. */
async function runToEnd(world: JobsWorld, id: string): Promise<number[]> {
  const waits: number[] = [];
  for (;;) {
    await world.attempt(id, failed());
    const { status, run_at } = await world.row(id);
    if (status !== 'queued') return waits;
    waits.push(run_at - world.clock.now());
    world.clock.advance(run_at - world.clock.now());
  }
}

describe.each(await engines())('on $name', (engine) => {
  describe('a run', () => {
    test('keeps an output with a NUL and half a surrogate pair exactly', async () => {
      const { submit, attempt, jobs, messages } = await jobsWorld(engine);
      const texts = { nul: 'a\0b', half: '\ud83d', '\0': '\\u0000' };
      const one = await submit();
      const other = await submit();

      await attempt(one.id, completed(texts));
      await attempt(other.id, completed('a\0\ud83d'));

      expect((await jobs.get('default', one.id)).output).toEqual(texts);
      expect((await jobs.get('default', other.id)).output).toBe('a\0\ud83d');
      // As JSON text, since PostgreSQL holds no such character.
      expect((await messages(other)).at(-1)?.content).toBe('"a\\u0000\\ud83d"');
    });

    test('gets the skill, its input and its context, and no more', async () => {
      const { submit, begin, clock, row } = await jobsWorld(engine);
      const job = await submit({ input: '{"a":"😀"}' });
      clock.advance(500);

      const { run } = await begin(job.id);

      expect(run.request).toEqual({
        skill: 'test/v1.0/echo',
        input: '{"a":"😀"}',
        context: {
          jobId: job.id,
          agentId: 'default',
          conversationId: job.conversation_id,
          organizationId: 'default',
          attempt: 1,
          now: clock.now() - 500,
        },
        timeoutMs: 60_000,
      });
      expect(await row(job.id)).toMatchObject({
        status: 'active',
        attempt: 1,
        epoch: 1,
        started_at: clock.now(),
        due_at: clock.now() + leaseMs,
      });
    });

    test('has the time that its input gives it, in the field that its skill names', async () => {
      const world = await jobsWorld(engine);
      const limit = { type: 'integer', minimum: 1, maximum: 86_400_000 };
      const parameters = { type: 'object', properties: { limit } };
      const echo = world.skills.active('default', 'test', 'v1.0', 'echo');
      await world.skills.register([{ ...echo, parameters, timeoutField: 'limit' }]);
      const limitOf = async (input: string) => {
        const job = await world.submit({ input });
        const { run, ended } = await world.begin(job.id);
        run.end(completed());
        await ended;
        return run.request.timeoutMs;
      };

      expect(await limitOf('{"limit":86400000}')).toBe(86_400_000);
      expect(await limitOf('{"limit":1}')).toBe(1);
      expect(await limitOf('{}')).toBe(60_000);
      // Accepted when the skill had other parameters.
      expect(await limitOf('{"limit":86400001}')).toBe(60_000);
      expect(await limitOf('"limit"')).toBe(60_000);
    });

    test('yields its slot while its outcome is being recorded, and takes it back then', async () => {
      const { submit, worker, observed } = await jobsWorld(engine);
      const job = await submit();
      const seen: string[] = [];
      const recorded = () => observed.map(({ status }) => status);
      const yielding = worker('yielding', {
        yieldSlot(queue) {
          seen.push(`yields ${queue}, recorded: ${recorded()}`);
          return () => seen.push(`has it back, recorded: ${recorded()}`);
        },
      });

      const { run, ended } = await yielding.begin(job.id);
      expect(seen).toEqual([]);
      run.end(completed(1));
      await ended;

      expect(seen).toEqual([
        'yields skill-execution, recorded: ',
        'has it back, recorded: completed',
      ]);
    });

    test('takes its slot back while the database is away, so that no further job is claimed', async () => {
      let isAway = false;
      const database = whileThere(await engine.fresh(), () => isAway);
      const { submit, worker, observed } = await jobsWorld(engine, { database });
      const job = await submit();
      const recordedAtResume: number[] = [];
      const yielding = worker('yielding', {
        yieldSlot() {
          isAway = true;
          return () => {
            recordedAtResume.push(observed.length);
            isAway = false;
          };
        },
      });

      await yielding.attempt(job.id, completed(1));

      expect(recordedAtResume[0]).toBe(0);
      expect(observed).toMatchObject([{ jobId: job.id, status: 'completed' }]);
    });

    test('that completes ends its job, its conversation and its stream in one transaction', async () => {
      const world = await jobsWorld(engine);
      const { submit, attempt, clock, jobs, messages, events, database, conversations } = world;
      const job = await submit();
      clock.advance(100);

      await attempt(job.id, completed({ words: 3 }), (run) => {
        run.report({ type: 'message', role: 'system', content: 'thinking' });
        clock.advance(250);
      });

      expect(await jobs.get('default', job.id)).toMatchObject({
        job_id: job.id,
        status: 'completed',
        output: { words: 3 },
        error: null,
        attempt: 1,
        duration_ms: 250,
      });
      expect((await messages(job)).map(({ role, content }) => [role, content])).toEqual([
        ['user', '{"a":1}'],
        ['system', 'thinking'],
        ['assistant', '{"words":3}'],
      ]);
      expect(await conversations.get('default', job.conversation_id)).toMatchObject({
        status: 'completed',
        updated_at: new Date(clock.now()).toISOString(),
      });
      const ended = (await events(job)).at(-1);
      expect(ended?.type).toBe('skill.completed');
      expect(JSON.parse(ended?.data ?? '')).toEqual({
        job_id: job.id,
        skill_category: 'test',
        skill_name: 'echo',
        skill_version: 'v1.0',
        conversation_id: job.conversation_id,
        duration_ms: 250,
        result_summary: '{"words":3}',
      });
      await expectConsistent(database);
    });

    test('that ends in a failing transaction leaves the job as it was', async () => {
      const { submit, begin, row, database, messages } = await jobsWorld(engine);
      const job = await submit();
      const { run, ended } = await begin(job.id);
      await database.write((tx) => tx.kysely.schema.dropTable('events').execute());

      run.end(completed());

      await expect(ended).rejects.toThrow();
      expect(await row(job.id)).toMatchObject({ status: 'active', output: null });
      expect(await messages(job)).toHaveLength(1);
    });

    test('has a summary of at most 200 whole characters', async () => {
      const { submit, attempt, events } = await jobsWorld(engine);
      const job = await submit();

      await attempt(job.id, completed(`${'x'.repeat(199)}😀 and more`));

      const { result_summary } = JSON.parse((await events(job)).at(-1)?.data ?? '');
      expect(result_summary).toHaveLength(200);
      expect(result_summary.isWellFormed()).toBe(true);
    });

    test('is refused an unknown request', async () => {
      const { submit, begin } = await jobsWorld(engine);
      const { run } = await begin((await submit()).id);

      await expect(run.ask('read-secrets', 'x')).rejects.toThrow('may not ask');
    });

    test('of a skill that no process has loaded fails without a retry', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit({ skill: { category: 'gone', name: 'x', version: 'v1.0' } });

      expect(await world.attempt(job.id, completed())).toBe(false);

      expect(await world.row(job.id)).toMatchObject({ status: 'failed', attempt: 1 });
      expect((await errorOf(world, job.id)).code).toBe('skill_execution_failed');
    });

    test('of a skill that another process has only just brought is handed on', async () => {
      const world = await jobsWorld(engine);
      const old = world.worker('old', { absentMs: 60_000, canRun: (name) => name !== newName });
      const job = await world.submit({ skill: newSkill });
      await registerNew(world, [newSkill]);

      expect(await old.attempt(job.id, completed())).toBe(false);

      expect(await world.row(job.id)).toMatchObject({ status: 'queued', attempt: 0 });
      expect((await world.row(job.id)).run_at).toBeGreaterThan(world.clock.now());
    });

    test('of a skill whose only process has gone waits a minute for it to come back', async () => {
      const world = await jobsWorld(engine);
      const other = world.worker('other', {
        absentMs: 60_000,
        canRun: (name) => name !== newName,
      });
      const job = await world.submit({ skill: newSkill });
      await registerNew(world, [newSkill]);
      await registerNew(world, []);

      world.clock.advance(59_000);
      expect(await other.attempt(job.id, completed())).toBe(false);
      expect(await world.row(job.id)).toMatchObject({ status: 'queued', attempt: 0 });
      world.clock.advance(10_000);
      expect(await other.attempt(job.id, completed())).toBe(false);

      expect((await errorOf(world, job.id)).code).toBe('skill_execution_failed');
    });

    test('of a version that was deprecated after it was accepted finishes', async () => {
      const { submit, attempt, skills, row, clock } = await jobsWorld(engine);
      const job = await submit();
      clock.advance(1);
      await skills.setDeprecated('test', 'v1.0', 'echo', true);

      await attempt(job.id, completed());

      expect((await row(job.id)).status).toBe('completed');
    });
  });

  describe('a hint', () => {
    test('for a job that is not queued, not due or not there does nothing', async () => {
      const { submit, attempt, perform, pool, clock } = await jobsWorld(engine);
      const done = await submit();
      await attempt(done.id, completed());
      const waiting = await submit();
      await attempt(waiting.id, failed());
      clock.advance(500);

      await perform(done.id);
      await perform(waiting.id);
      await perform('0191f3b0-0000-7000-8000-000000000000');

      expect(pool.runs).toHaveLength(2);
    });

    test('doubled a hundred times is one run', async () => {
      const { submit, perform, pool, row, database } = await jobsWorld(engine);
      const job = await submit();

      const hints = Array.from({ length: 100 }, () => perform(job.id));
      (await pool.begun(job.id)).end(completed());
      await Promise.all(hints);

      expect(pool.runs).toHaveLength(1);
      expect(await row(job.id)).toMatchObject({ attempt: 1, epoch: 1 });
      await expectConsistent(database);
    });

    test('at two processes at once is one run', async () => {
      const { submit, database, perform, pool, worker } = await jobsWorld(engine);
      const two = worker('second');
      const submitted = await Promise.all(Array.from({ length: 30 }, () => submit()));

      const hints = submitted.flatMap(({ id }) => [perform(id), two.perform(id)]);
      await Promise.all(
        submitted.map(async ({ id }) => {
          (await Promise.race([pool.begun(id), two.pool.begun(id)])).end(completed());
        }),
      );
      await Promise.all(hints);

      expect(pool.runs.length + two.pool.runs.length).toBe(30);
      await expectConsistent(database);
    });
  });

  describe('a run that fails', () => {
    test('is retried after 1 s, then 2 s, with jitter; a direct run gets 3 attempts', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();

      const waits = await runToEnd(world, job.id);

      expect(waits).toHaveLength(2);
      for (const [i, full] of [1_000, 2_000].entries()) {
        expect(waits[i]).toBeGreaterThanOrEqual(full * 0.8);
        expect(waits[i]).toBeLessThanOrEqual(full);
      }
      expect(await world.row(job.id)).toMatchObject({ status: 'failed', attempt: 3, epoch: 3 });
      expect(world.pool.runs.map(({ request }) => request.context.attempt)).toEqual([1, 2, 3]);
    });

    test('by a schedule gets 1 + 3 attempts, backoff growing, and one skill.failed', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit(scheduled);

      const waits = await runToEnd(world, job.id);

      expect(waits).toHaveLength(3);
      expect(waits.toSorted((a, b) => a - b)).toEqual(waits);
      const failures = (await world.events(job)).filter(({ type }) => type === 'skill.failed');
      expect(failures).toHaveLength(1);
      expect(JSON.parse(failures[0]?.data ?? '')).toMatchObject({
        attempts: 4,
        error: { code: 'skill_execution_failed', message: 'it broke' },
      });
      await expectConsistent(world.database);
    });

    test('is hinted for the moment at which it is due, and not claimed before', async () => {
      const { submit, attempt, row, clock, hints, perform, pool } = await jobsWorld(engine);
      const job = await submit();
      await attempt(job.id, failed());

      const { run_at, due_at, status } = await row(job.id);
      const delayMs = run_at - clock.now();
      expect(status).toBe('queued');
      expect(due_at).toBe(run_at);
      expect(hints.at(-1)).toEqual({
        queue: 'skill-execution',
        id: job.id,
        organizationId: 'default',
        generation: 1,
        delayMs,
      });

      clock.advance(delayMs - 1);
      await perform(job.id);
      expect(pool.runs).toHaveLength(1);
      clock.advance(1);
      await attempt(job.id, completed());
      expect(await row(job.id)).toMatchObject({ status: 'completed', attempt: 2 });
    });

    test('twice and then succeeds is completed at attempt 3, and failed attempts leave no message', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();

      for (const outcome of [failed(), failed(), completed('fine')]) {
        world.clock.advance(5_000);
        await world.attempt(job.id, outcome, (run) =>
          run.report({ type: 'message', role: 'assistant', content: 'draft' }),
        );
      }

      expect(await world.row(job.id)).toMatchObject({
        status: 'completed',
        attempt: 3,
        error: null,
      });
      const spoken = (await world.messages(job)).map(({ content }) => content);
      expect(spoken).toEqual(['{"a":1}', 'draft', 'fine']);
    });

    test('and says that it is not retryable is failed at once', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();

      await world.attempt(job.id, failed({ retryable: false, message: 'no such page' }));

      expect(await world.row(job.id)).toMatchObject({ status: 'failed', attempt: 1 });
      expect(await errorOf(world, job.id)).toEqual({
        code: 'skill_execution_failed',
        message: 'no such page',
      });
      const conversation = await world.conversations.get('default', job.conversation_id);
      expect(conversation.status).toBe('failed');
    });

    test('at its deadline fails as skill_timeout, and is retried', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit({ maxAttempts: 2 });
      const timeout = { kind: 'timeout', message: 'run timed out after 60000 ms' } as const;

      await world.attempt(job.id, timeout);
      expect((await world.row(job.id)).status).toBe('queued');
      world.clock.advance(5_000);
      await world.attempt(job.id, timeout);

      expect((await world.row(job.id)).status).toBe('failed');
      expect(await errorOf(world, job.id)).toEqual({
        code: 'skill_timeout',
        message: 'run timed out after 60000 ms',
      });
    });

    test('with missing_credentials sends agent.error too', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();

      await world.attempt(job.id, {
        kind: 'failed',
        code: 'missing_credentials',
        message: 'SMTP_URL is not set',
        retryable: false,
      });

      const events = (await world.events(job)).map(({ type, data }) => [type, JSON.parse(data)]);
      expect(events.map(([type]) => type)).toEqual([
        'conversation.created',
        'skill.failed',
        'agent.error',
      ]);
      expect(events[2]?.[1]).toEqual({
        code: 'missing_credentials',
        message: 'SMTP_URL is not set',
        job_id: job.id,
      });
    });

    test('in one commit with other jobs does not affect them', async () => {
      const { submit, begin, database, row } = await jobsWorld(engine);
      const submitted = await Promise.all(Array.from({ length: 20 }, () => submit()));
      const runs = await Promise.all(submitted.map(({ id }) => begin(id)));

      runs.forEach(({ run }, i) => {
        run.end(i % 3 === 0 ? failed({ retryable: false }) : completed(i));
      });
      await Promise.all(runs.map(({ ended }) => ended));

      const statuses = await Promise.all(submitted.map(async ({ id }) => (await row(id)).status));
      expect(statuses).toEqual(submitted.map((_, i) => (i % 3 === 0 ? 'failed' : 'completed')));
      await expectConsistent(database);
    });

    test('is observed once for each attempt', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit({ maxAttempts: 2 });

      await world.attempt(job.id, failed(), () => world.clock.advance(70));
      world.clock.advance(5_000);
      await world.attempt(job.id, failed(), () => world.clock.advance(30));

      expect(world.observed).toEqual([
        { jobId: job.id, status: 'queued', tookMs: 70 },
        { jobId: job.id, status: 'failed', tookMs: 30 },
      ]);
    });

    test('is observed to leave its process also where it is stopped, refused or its lease is lost', async () => {
      const world = await jobsWorld(engine);
      const events: unknown[] = [];
      world.context.observers.add({
        begun: ({ id }) => events.push(['begun', id]),
        left: ({ id }, how) => events.push(['left', id, how]),
      });
      const jobs = [await world.submit(), await world.submit(), await world.submit()];
      const [refused = '', lost = '', stopped = ''] = jobs.map(({ id }) => id);

      await world.worker('without the skill', { canRun: () => false }).perform(refused);
      const losing = world.worker('losing');
      const run = await losing.begin(lost);
      world.clock.advance(leaseMs + 1_000);
      await world.recovery.sweep();
      await losing.running.renewLeases();
      run.run.end({ kind: 'aborted' });
      await run.ended;
      const last = await world.begin(stopped);
      world.running.handBack();
      last.run.end({ kind: 'aborted' });
      await last.ended;

      expect(events).toEqual([
        ['begun', refused],
        ['left', refused, 'settled'],
        ['begun', lost],
        ['left', lost, 'lease lost'],
        ['begun', stopped],
        ['left', stopped, 'settled'],
      ]);
    });

    test('is observed from its acceptance to its end, each event with its job', async () => {
      const world = await jobsWorld(engine);
      const events: [event: string, jobId: string | undefined, more?: unknown][] = [];
      world.context.observers.add({
        accepted: (jobs) => events.push(['accepted', jobs[0]?.id]),
        claimed: ({ id }) => events.push(['claimed', id]),
        begun: ({ id }) => events.push(['begun', id]),
        left: ({ id }, how) => events.push(['left', id, how]),
        stepBegun: ({ id }, { kind, name }) => events.push(['step', id, `${kind} ${name}`]),
        waitBegun: ({ id }, { kind }) => events.push(['wait', id, kind]),
        ended: ({ job, transition }) => events.push(['ended', job.id, transition.status]),
        lost: (jobs) => events.push(['lost', jobs[0]?.id]),
      });

      const { id } = await world.submit();
      await world.attempt(id, completed(), async (run) => {
        const step = { kind: 'step', name: 'pay', digest: '', nth: 1 };
        const begun = (await run.ask('begin-step', step)) as { step: number };
        await run.ask('end-step', { step: begun.step, output: 1 });
        await run.ask('wait', { kind: 'sleep', name: 'nap', nth: 1, ms: 0 });
      });
      const lost = await world.submit();
      const late = await world.worker('slow').begin(lost.id);
      world.clock.advance(leaseMs + 1_000);
      await world.recovery.sweep();
      late.run.end(completed());
      await late.ended;

      expect(events).toEqual([
        ['accepted', id],
        ['claimed', id],
        ['begun', id],
        ['step', id, 'step pay'],
        ['ended', id, 'completed'],
        ['left', id, 'settled'],
        ['accepted', lost.id],
        ['claimed', lost.id],
        ['begun', lost.id],
        ['ended', lost.id, 'queued'],
        ['lost', lost.id],
        ['left', lost.id, 'lease lost'],
      ]);
    });
  });

  describe('an executor that dies', () => {
    test('uses up no attempt of a run that is not the cause', async () => {
      const { submit, attempt, row, hints, clock, database } = await jobsWorld(engine);
      const job = await submit();

      await attempt(job.id, { kind: 'displaced', suspect: false });

      expect(await row(job.id)).toMatchObject({
        status: 'queued',
        attempt: 0,
        epoch: 1,
        deaths: 0,
        run_at: clock.now(),
        error: null,
      });
      expect(hints.at(-1)).toMatchObject({ id: job.id, generation: 1, delayMs: 0 });
      await expectConsistent(database);
    });

    test('uses up no attempt of a suspect either; after two such deaths the suspect runs alone', async () => {
      const { submit, attempt, row, pool } = await jobsWorld(engine);
      const job = await submit();

      for (let i = 0; i < 3; i++) await attempt(job.id, { kind: 'displaced', suspect: true });

      expect(pool.runs.map(({ request }) => request.alone ?? false)).toEqual([false, false, true]);
      expect(pool.runs.map(({ request }) => request.context.attempt)).toEqual([1, 1, 1]);
      expect(await row(job.id)).toMatchObject({ status: 'queued', attempt: 0, deaths: 3 });
    });

    test('under a run that is alone in it ends that job as worker_lost', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();
      for (let i = 0; i < 2; i++) {
        await world.attempt(job.id, { kind: 'displaced', suspect: true });
      }

      await world.attempt(job.id, { kind: 'lost', message: 'the executor died' });

      expect(await world.row(job.id)).toMatchObject({ status: 'failed', attempt: 1 });
      expect((await errorOf(world, job.id)).code).toBe('worker_lost');
    });

    test('of the only run in it has used up one of its attempts', async () => {
      const world = await jobsWorld(engine);
      const job = await world.submit();
      const lost = { kind: 'lost', message: 'the executor died' } as const;

      await world.attempt(job.id, lost);
      expect(await world.row(job.id)).toMatchObject({ status: 'queued', attempt: 1 });
      world.clock.advance(60_000);
      await world.attempt(job.id, lost);
      world.clock.advance(60_000);
      await world.attempt(job.id, lost);

      expect(await world.row(job.id)).toMatchObject({ status: 'failed', attempt: 3 });
      expect((await errorOf(world, job.id)).code).toBe('worker_lost');
    });
  });

  test('events of a run are written when it is settled, in order and with its progress', async () => {
    const { submit, begin, row, database } = await jobsWorld(engine);
    const job = await submit();
    const { run, ended } = await begin(job.id);

    for (let i = 1; i <= 50; i++) run.report({ type: 'progress', fraction: i / 50 });
    run.end(completed());
    await ended;

    expect(JSON.parse((await row(job.id)).progress ?? '')).toEqual({ fraction: 1, note: null });
    expect(await saidIn(database, job.id)).toEqual(
      Array.from({ length: 50 }, (_, i) => ({ n: i + 1, fraction: (i + 1) / 50 })),
    );
  });

  test('late messages of a lost run do not affect the run that replaced it', async () => {
    const { submit, worker, recovery, clock, row, begin } = await jobsWorld(engine);
    const job = await submit();
    const slow = worker('slow');
    const late = await slow.begin(job.id);
    clock.advance(leaseMs);
    await recovery.sweep();
    clock.advance(5_000);
    const next = await begin(job.id);

    next.run.report({ type: 'progress', fraction: 0.1 });
    late.run.report({ type: 'progress', fraction: 0.9 });
    late.run.end(completed());
    await late.ended;
    next.run.end(failed({ retryable: false }));
    await next.ended;

    expect(JSON.parse((await row(job.id)).progress ?? '')).toEqual({ fraction: 0.1, note: null });
  });
});

async function saidIn(database: Database, jobId: string) {
  const rows = await database.read.kysely
    .selectFrom('job_events')
    .select(['n', 'data'])
    .where('job_id', '=', jobId)
    .orderBy('n')
    .execute();
  return rows.map(({ n, data }) => ({ n, fraction: JSON.parse(data).fraction }));
}
