import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { defineSkill, type SkillContext, type SkillDefinition, SkillError } from '../../author.ts';
import { Journal } from '../../core/journal/journal.ts';
import { TestClock } from './clock.ts';
import { TestExecutors } from './executors.ts';
import { Script } from './script.ts';
import { StandIns } from './stand-ins.ts';
import { runSkill } from './testing.ts';

const anything = { type: 'object' };

/** A skill of this code. */
function skill<Output>(
  run: (input: { n: number }, ctx: SkillContext) => Promise<Output> | Output,
): SkillDefinition<{ n: number }, Output> {
  return {
    category: 'own',
    name: 'tested',
    version: 'v1.0',
    displayName: 'Tested',
    description: 'Is tested.',
    parameters: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
    output: anything,
    run,
  };
}

const other = defineSkill({
  category: 'own',
  name: 'double',
  version: 'v1.0',
  displayName: 'Double',
  description: 'Doubles.',
  parameters: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
  output: { type: 'object', properties: { twice: { type: 'integer' } } },
  run: ({ n }) => ({ twice: 2 * n }),
});

describe('runSkill', () => {
  test('gives the output as JSON carries it, with logs, progress and messages', async () => {
    const run = await runSkill(
      skill(({ n }, ctx) => {
        ctx.log('begun', { n });
        ctx.progress(0.5, 'half');
        ctx.message('assistant', 'hello');
        return { at: ctx.now(), n };
      }),
      { n: 1 },
      { now: '2026-05-01T10:00:00Z' },
    );

    expect(run).toMatchObject({
      status: 'completed',
      output: { at: '2026-05-01T10:00:00.000Z', n: 1 },
      error: undefined,
      logs: [{ message: 'begun', fields: { n: 1 } }],
      progress: [{ fraction: 0.5, note: 'half' }],
      messages: [{ role: 'assistant', content: 'hello' }],
    });
  });

  test("refuses input and output that break the skill's schemas", async () => {
    const wrongInput = await runSkill(
      skill(() => ({})),
      { n: 'one' } as never,
    );
    const wrongOutput = await runSkill(
      skill(() => 'no object'),
      { n: 1 },
    );

    expect(wrongInput.error).toMatchObject({ code: 'validation_error', message: /n must be/ });
    expect(wrongOutput.error).toMatchObject({ code: 'output_invalid', retryable: false });
  });

  test('a definition that the platform would not load is refused', async () => {
    await expect(runSkill({ ...other, name: 'Not A Slug' }, { n: 1 })).rejects.toThrow(/name/);
    await expect(runSkill({ ...other, output: { type: 'nonsense' } }, { n: 1 })).rejects.toThrow(
      /output is no valid JSON Schema/,
    );
  });

  test('takes the path of a module', async () => {
    const file = join(import.meta.dirname, '../../../examples/skills/greetings/hello.ts');
    const run = await runSkill(file, { name: 'Ada' });
    expect(run).toMatchObject({ status: 'completed', logs: expect.any(Array) });
  });

  test('waits are skipped by the clock, and the code is executed again after each', async () => {
    let executions = 0;
    let stepsExecuted = 0;
    const run = await runSkill(
      skill(async (_input, ctx) => {
        executions += 1;
        ctx.log(`execution ${executions}`);
        const first = await ctx.step('first', () => {
          stepsExecuted += 1;
          return ctx.uuid();
        });
        await ctx.sleep('a while', '3d');
        const paid = await ctx.waitForEvent<{ amount: number }>('paid', {
          event: 'order.paid',
          key: 7,
        });
        const decision = await ctx.approve('manager', { title: 'Ship it?' });
        return { first, amount: paid?.data.amount, decision, now: ctx.now() };
      }),
      { n: 1 },
      {
        events: [{ event: 'order.paid', key: 7, data: { amount: 40 }, after: '4d' }],
        approvals: { manager: { approved: true, reason: 'fine', after: '1h' } },
      },
    );

    expect(run.output).toMatchObject({
      amount: 40,
      decision: { approved: true, reason: 'fine' },
      now: '2026-01-05T01:00:00.000Z',
    });
    expect({ executions, stepsExecuted }).toEqual({ executions: 4, stepsExecuted: 1 });
    expect(run.logs.map(({ message }) => message)).toEqual(['execution 1']);
    expect(run.steps.map(({ kind, status }) => `${kind} ${status}`)).toEqual([
      'step completed',
      'sleep completed',
      'event completed',
      'approval completed',
    ]);
  });

  test('without replays, the same execution goes on', async () => {
    let executions = 0;
    const run = await runSkill(
      skill(async (_input, ctx) => {
        executions += 1;
        await Promise.all([ctx.sleep('short', '1h'), ctx.sleep('long', '2h')]);
        return { now: ctx.now() };
      }),
      { n: 1 },
      { replay: false },
    );
    expect({ output: run.output, executions }).toEqual({
      output: { now: '2026-01-01T02:00:00.000Z' },
      executions: 1,
    });
  });

  test('code that takes other steps when it is executed again fails with replay_diverged', async () => {
    let count = 0;
    const diverging = skill(async (_input, ctx) => {
      count += 1;
      await ctx.step(`step ${count}`, () => null);
      await ctx.sleep('a while', '1h');
      return {};
    });

    const run = await runSkill(diverging, { n: 1 });

    expect(run.error).toMatchObject({ code: 'replay_diverged', message: /"step 1"/ });
    count = 0;
    expect((await runSkill(diverging, { n: 1 }, { replay: false })).status).toBe('completed');
  });

  test('a race of two waits has the winner that the script makes first', async () => {
    const racing = skill(async (_input, ctx) => {
      const answered = ctx.waitForEvent('answer', { event: 'answered' });
      const first = await Promise.race([
        answered.then(() => 'answered'),
        ctx.sleep('patience', '1h').then(() => 'too late'),
      ]);
      await ctx.sleep('afterwards', '1d');
      return { first };
    });
    const answeredAfter = (after: string) =>
      runSkill(racing, { n: 1 }, { events: [{ event: 'answered', after }] });

    expect((await answeredAfter('30m')).output).toEqual({ first: 'answered' });
    expect((await answeredAfter('2h')).output).toEqual({ first: 'too late' });
  });

  test('the form of an approval is filled in by the test, and has to fit', async () => {
    const fields = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const asking = skill(async (_input, ctx) =>
      ctx.approve<{ n: number }>('manager', { title: 'How many?', fields }),
    );
    const answered = (answer: Record<string, unknown>) =>
      runSkill(asking, { n: 1 }, { approvals: { manager: { approved: true, answer } } });
    expect((await answered({ n: 3 })).output).toMatchObject({ approved: true, answer: { n: 3 } });
    await expect(answered({ n: 'x' })).rejects.toThrow(
      /does not fit its fields: n must be integer/,
    );
  });

  test('timeouts of waits: an event that never comes, an approval that expires', async () => {
    const run = await runSkill(
      skill(async (_input, ctx) => ({
        event: await ctx.waitForEvent('paid', { event: 'order.paid', timeout: '2d' }),
        decision: await ctx.approve('manager', { title: 'Ship it?', timeout: '1d' }),
      })),
      { n: 1 },
      { events: [{ event: 'order.paid', never: true }], approvals: { manager: 'expired' } },
    );
    expect(run.output).toEqual({
      event: null,
      decision: { approved: false, by: null, reason: 'expired' },
    });
    expect(run.now).toEqual(new Date('2026-01-04T00:00:00Z'));
  });

  test('map takes a step for each item; retries of a step take no time', async () => {
    let failures = 0;
    const run = await runSkill(
      skill(async (_input, ctx) => {
        const squares = await ctx.map('square', [1, 2, 3], (item) => item * item);
        await ctx.sleep('a while', '1h');
        const late = await ctx.step(
          'fails twice',
          () => {
            failures += 1;
            if (failures < 3) throw new Error('not yet');
            return 'done';
          },
          { retries: 100 },
        );
        return { squares, late };
      }),
      { n: 1 },
    );
    expect(run.output).toEqual({ squares: [1, 4, 9], late: 'done' });
  });

  test('answers of the model come from the script, also corrections, and are recorded', async () => {
    const schema = { type: 'object', required: ['team'], properties: { team: { type: 'string' } } };
    const run = await runSkill(
      skill(async (_input, ctx) => {
        const { output } = await ctx.generate({ prompt: 'Which team?', schema });
        await ctx.sleep('a while', '1h');
        const { text } = await ctx.generate({ prompt: 'Draft an answer.' });
        return { output, text };
      }),
      { n: 1 },
      { models: [{ output: { group: 'x' } }, { output: { team: 'billing' } }, 'Dear customer'] },
    );
    expect(run.output).toEqual({ output: { team: 'billing' }, text: 'Dear customer' });
    expect(run.requests).toHaveLength(3);
  });

  test('a model that calls skills as tools gets their results, and each is called once', async () => {
    const run = await runSkill(
      skill(async ({ n }, ctx) => {
        const { text, turns, usage } = await ctx.generate({ prompt: 'Count', tools: ['own/*'] });
        await ctx.sleep('a while', '1h');
        return { n, text, turns, tokens: usage.total_tokens, usd: usage.cost_usd };
      }),
      { n: 1 },
      {
        models: [
          {
            totalTokens: 5,
            costUsd: 0.25,
            toolCalls: [
              { skill: 'own/v1.0/double', input: { n: 4 } },
              { skill: 'own/v1.0/double', input: { n: 'four' } },
              { skill: 'other/v1.0/secret' },
            ],
          },
          { text: 'eight', totalTokens: 6, costUsd: 0.5 },
        ],
        skills: { 'own/v1.0/double': other },
      },
    );

    expect(run.output).toEqual({ n: 1, text: 'eight', turns: 2, tokens: 11, usd: 0.75 });
    expect(run.toolCalls).toEqual([
      { skill: 'own/v1.0/double', input: { n: 4 }, output: { twice: 8 } },
      {
        skill: 'own/v1.0/double',
        input: { n: 'four' },
        error: { code: 'validation_error', message: expect.stringContaining('n must be') },
      },
      {
        skill: 'other/v1.0/secret',
        input: {},
        error: { code: 'invalid_input', message: expect.stringContaining('there is no tool') },
      },
    ]);
    expect(run.steps.map(({ kind }) => kind)).toEqual(['generate', 'sleep']);
  });

  test('a function in the place of the model sees the results of tools', async () => {
    const run = await runSkill(
      skill((_input, ctx) => ctx.generate({ prompt: 'Go', tools: true, maxTurns: 2 })),
      { n: 1 },
      {
        models: (_request, _nth, [last]) =>
          last === undefined
            ? { toolCalls: [{ skill: 'a/v1.0/b' }] }
            : `got ${JSON.stringify(last.output)}`,
        skills: { 'a/v1.0/b': () => ({ c: 1 }) },
      },
    );
    expect(run.output).toMatchObject({ text: 'got {"c":1}' });

    const endless = await runSkill(
      skill((_input, ctx) => ctx.generate({ prompt: 'Go', tools: true, maxTurns: 2 })),
      { n: 1 },
      { models: () => ({ toolCalls: [{ skill: 'a/v1.0/b' }] }), skills: { 'a/v1.0/b': {} } },
    );
    expect(endless.error?.message).toBe('The model did not come to an answer within 2 turns');
  });

  test('an error of the model reaches the skill with its code', async () => {
    const down = Object.assign(new Error('no model'), { code: 'upstream_unavailable' });
    const run = await runSkill(
      skill(async (_input, ctx) => await ctx.generate({ prompt: 'a' })),
      { n: 1 },
      { models: [down] },
    );
    expect(run.error).toMatchObject({ code: 'upstream_unavailable', message: 'no model' });
  });

  test('called skills and child runs are definitions, functions or errors', async () => {
    const calling = skill(async ({ n }, ctx) => ({
      called: await ctx.callSkill('own/v1.0/double', { n }),
      child: await ctx.run('child', 'own/v1.0/double', { n: n + 1 }),
      refused: await ctx.run('other', 'own/v1.0/other', {}).catch((error) => error.message),
    }));
    const run = await runSkill(
      calling,
      { n: 2 },
      {
        skills: { 'own/v1.0/double': other },
        children: {
          'own/v1.0/double': other,
          'own/v1.0/other': () => {
            throw new Error('not today');
          },
        },
      },
    );
    expect(run.output).toEqual({ called: { twice: 4 }, child: { twice: 6 }, refused: 'not today' });
    const stub = { skills: { 'own/v1.0/double': () => ({ twice: 0 }) } };
    const stubbed = await runSkill(
      skill(async (_input, ctx) => await ctx.callSkill('own/v1.0/double', {})),
      { n: 2 },
      stub,
    );
    expect(stubbed.output).toEqual({ twice: 0 });
  });

  test.each<[string, (ctx: SkillContext) => Promise<unknown>, RegExp]>([
    ['a model', (ctx) => ctx.generate({ prompt: 'Hi' }), /"Hi".*\{ models: \['…'\] \}/],
    [
      'an event',
      (ctx) => ctx.waitForEvent('w', { event: 'e', key: 'k' }),
      /events: \[\{ event: "e", key: "k"/,
    ],
    [
      'a decision',
      (ctx) => ctx.approve('boss', { title: 'OK?' }),
      /approvals: \{ "boss": \{ approved: true/,
    ],
    ['a child run', (ctx) => ctx.run('c', 'a/v1.0/b', {}), /children: \{ 'a\/v1\.0\/b'/],
    ['a called skill', (ctx) => ctx.callSkill('a/v1.0/b', {}), /skills: \{ 'a\/v1\.0\/b'/],
  ])('a script without %s is an error that shows what to add', async (_what, ask, pattern) => {
    const catching = skill(async (_input, ctx) => ({ answer: await ask(ctx).catch(() => null) }));
    await expect(runSkill(catching, { n: 1 })).rejects.toThrow(pattern);
  });

  test('files are given and kept with the bounds of the platform, once however often the run is repeated', async () => {
    const id = '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2c';
    const ofAda = '019a9d3c-5b7e-7c41-8a2f-3d5e7f901b2d';
    let executions = 0;
    const run = await runSkill(
      skill(async (_, ctx) => {
        executions += 1;
        const { data, ...given } = await ctx.files.get(id);
        const large = await ctx.files.put('large.bin', new Uint8Array(1_500_000).fill(7));
        await ctx.sleep('wait', '1h');
        const inStep = await ctx.step('render', () =>
          ctx.files.put('folder/page.md', `${new TextDecoder().decode(data)}!`),
        );
        const again = await ctx.files.get(large.id);
        const other = await ctx.files.get(ofAda).catch((error) => error.message);
        const tooLarge = await ctx.files
          .put('b', new Uint8Array(33 * 1024 * 1024))
          .catch((error) => error.message);
        const noData = await ctx.files.put('b', 1 as never).catch((error) => error.message);
        return { given, large, inStep, size: again.data.length, other, tooLarge, noData };
      }),
      { n: 1 },
      {
        files: [
          { id, name: 'given.txt', data: 'hällo' },
          { id: ofAda, name: 'of-ada.txt', data: 'secret', userId: 'ada' },
        ],
      },
    );

    expect(run).toMatchObject({
      status: 'completed',
      output: {
        given: { type: 'file', id, name: 'given.txt', media_type: 'text/plain', bytes: 6 },
        large: { type: 'file', name: 'large.bin', bytes: 1_500_000 },
        inStep: { name: 'page.md', media_type: 'text/markdown' },
        size: 1_500_000,
        other: expect.stringContaining('not found'),
        tooLarge: 'A file may have 32 MiB (FILE_MAX_MB)',
        noData: 'the data of a file must be a text or a Uint8Array',
      },
    });
    expect(executions).toBe(2);
    expect(run.files.map(({ name, data }) => [name, data.length])).toEqual([
      ['large.bin', 1_500_000],
      ['page.md', 7],
    ]);
    expect(run.steps.map(({ name, status }) => `${name}: ${status}`)).toEqual([
      'files.put large.bin: completed',
      'wait: completed',
      'render: completed',
      'files.put b: failed',
    ]);
  });

  test('the memory has the bounds of the platform, and a failed run leaves no changes', async () => {
    const memory = [{ content: 'likes tea' }, { content: 'likes coffee', tag: 'drink' }];
    const run = await runSkill(
      skill(async (_input, ctx) => {
        const [tea] = await ctx.memory.recall({ query: 'tea' });
        await ctx.memory.forget(tea?.id ?? '');
        await ctx.memory.remember({ content: 'likes water' });
        const tagged = await ctx.memory.recall({ tag: 'drink' });
        const wrong = await ctx.memory.recall({ limit: 1_000 }).catch((error) => error.message);
        return { tagged: tagged.map(({ content }) => content), wrong };
      }),
      { n: 1 },
      { memory },
    );
    expect(run.output).toEqual({
      tagged: ['likes coffee'],
      wrong: 'limit must be an integer from 1 to 200',
    });
    expect(run.memory.map(({ content }) => content)).toEqual(['likes water', 'likes coffee']);
    const large = Array.from({ length: 700 }, (_, i) => ({ content: `${i}${'x'.repeat(7_000)}` }));
    const known = await runSkill(other, { n: 1 }, { memory: large });
    expect(known.memory).toHaveLength(700);
    const failing = skill(async (_input, ctx) => {
      await ctx.memory.remember({ content: 'lost' });
      throw new SkillError('no', { retryable: false });
    });
    expect((await runSkill(failing, { n: 1 }, { memory })).memory).toHaveLength(2);
  });

  test('the settings of the skill come from the script, and a required one may not be missing', async () => {
    const configured = {
      ...skill((_input, ctx) => {
        ctx.log('the key is sk-123456789');
        return { ...ctx.config };
      }),
      config: {
        API_KEY: { secret: true as const, required: true as const, description: 'A key.' },
        REGION: { description: 'A region.', default: 'eu' },
      },
    };
    const run = await runSkill(configured, { n: 1 }, { config: { API_KEY: 'sk-123456789' } });
    expect(run.steps).toEqual([]);
    expect(run.output).toMatchObject({ REGION: 'eu' });
    expect(JSON.stringify(run.logs)).not.toContain('sk-123456789');
    const missing = await runSkill(configured, { n: 1 });
    const named = { code: 'missing_credentials', message: expect.stringContaining('API_KEY') };
    expect(missing.error).toMatchObject(named);
    // Like on a platform, a setting that says nothing of itself is required.
    const silent = { ...configured, config: { API_KEY: { description: 'A key.' } } };
    expect((await runSkill(silent, { n: 1 })).error).toMatchObject(named);
  });

  test('further attempts take the recorded steps', async () => {
    let paid = 0;
    const flaky = skill(async (_input, ctx) => {
      await ctx.step('pay', () => {
        paid += 1;
      });
      if (ctx.attempt < 3) throw new Error('try again');
      return { paid };
    });
    const run = await runSkill(flaky, { n: 1 }, { attempts: 3 });
    expect(run).toMatchObject({ status: 'completed', output: { paid: 1 }, attempts: 3 });
    const once = await runSkill(flaky, { n: 1 });
    expect(once.error).toEqual({
      code: 'skill_execution_failed',
      message: 'try again',
      retryable: true,
    });
  });

  test('a run that does not end is stopped, and one can be cancelled', async () => {
    const endless = skill(
      (_input, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason));
        }),
    );
    const late = await runSkill(endless, { n: 1 }, { timeoutMs: 20 });
    expect(late.error).toMatchObject({ code: 'skill_timeout' });
    const limit = { type: 'integer', minimum: 1, maximum: 1_000 };
    const limited = { ...endless, parameters: { properties: { n: limit } } };
    const asked = await runSkill({ ...limited, timeoutField: 'n' }, { n: 20 });
    expect(asked.error).toMatchObject({ code: 'skill_timeout' });
    const cancelled = await runSkill(endless, { n: 1 }, { signal: AbortSignal.abort() });
    expect(cancelled).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
  });

  test('a tool that waits goes on where it was: the model is not asked again', async () => {
    const calls: string[] = [];
    const waiting: SkillDefinition = {
      ...other,
      async run(input, ctx) {
        await ctx.step('count', () => void calls.push(JSON.stringify(input)));
        await ctx.sleep('a while', '2h');
        await ctx.memory.remember({ content: 'a tool was here' });
        return { twice: 0 };
      },
    } as SkillDefinition;
    const run = await runSkill(
      skill(async (_input, ctx) => await ctx.generate({ prompt: 'Go', tools: true })),
      { n: 1 },
      {
        models: [
          {
            toolCalls: [
              { skill: 'own/v1.0/double', input: { n: 1 } },
              { skill: 'own/v1.0/double', input: { n: 2 } },
            ],
          },
          'done',
        ],
        skills: { 'own/v1.0/double': waiting },
      },
    );

    expect(run.output).toMatchObject({ text: 'done', turns: 2 });
    expect(run.requests).toHaveLength(2);
    expect(run.toolCalls).toHaveLength(2);
    expect(calls.sort()).toEqual(['{"n":1}', '{"n":2}']);
    // Those of the tools are among the steps of the run.
    const kinds = run.steps.map(({ kind }) => kind).sort();
    expect(kinds).toEqual(['generate', 'sleep', 'sleep', 'step', 'step']);
    expect(run.now).toEqual(new Date('2026-01-01T02:00:00Z'));
    expect(run.memory.map(({ content }) => content)).toEqual(['a tool was here']);
  });

  test.each([true, false])('child runs wait beside their parent (replay: %s)', async (replay) => {
    const child: SkillDefinition = {
      ...other,
      async run(_input, ctx) {
        await ctx.sleep('long', '3h');
        const decision = await ctx.approve('manager', { title: 'Ship it?' });
        return { twice: decision.approved ? 1 : 0 };
      },
    } as SkillDefinition;
    const run = await runSkill(
      skill(async (_input, ctx) => {
        const order: string[] = [];
        await Promise.all([
          ctx.run('child', 'own/v1.0/double', { n: 1 }).then(() => order.push('child')),
          ctx.sleep('short', '1h').then(() => order.push('sleep')),
        ]);
        return { order, now: ctx.now() };
      }),
      { n: 1 },
      { children: { 'own/v1.0/double': child }, approvals: { manager: true }, replay },
    );
    expect(run.output).toEqual({ order: ['sleep', 'child'], now: '2026-01-01T03:00:00.000Z' });
    expect(run.steps.map(({ kind }) => kind)).toEqual(['run', 'sleep']);
  });

  test('a missing answer ends the test, also beside a wait of a run that stays loaded', async () => {
    const waiting = skill((_input, ctx) =>
      Promise.allSettled([
        ctx.generate({ prompt: 'Hi' }),
        ctx.waitForEvent('paid', { event: 'order.paid' }),
      ]),
    );
    const events = [{ event: 'order.paid', after: '1h' }];
    await expect(runSkill(waiting, { n: 1 }, { events, replay: false })).rejects.toThrow(/"Hi"/);
  });

  test('a test ends with its run, also if a child run waits on and stays loaded', async () => {
    const child: SkillDefinition = {
      ...other,
      run: async (_input, ctx) => await ctx.sleep('for long', '2h').then(() => ({ twice: 0 })),
    } as SkillDefinition;
    const run = await runSkill(
      skill(async (_input, ctx) => {
        const called = ctx.run('child', 'own/v1.0/double', { n: 1 }).then(() => 'child');
        return { first: await Promise.race([called, ctx.sleep('patience', '1h')]) };
      }),
      { n: 1 },
      { children: { 'own/v1.0/double': child }, replay: false },
    );
    expect(run).toMatchObject({ status: 'completed', output: {} });
    expect(run.now).toEqual(new Date('2026-01-01T01:00:00Z'));
  });

  test('a wait whose deadline passes during the retries of a step ends without delay', async () => {
    let failures = 0;
    const run = await runSkill(
      skill(async (_input, ctx) => {
        const retried = () => {
          failures += 1;
          if (failures < 60) throw new Error('not yet');
        };
        await Promise.all([ctx.sleep('a', '5m'), ctx.step('s', retried, { retries: 100 })]);
        return {};
      }),
      { n: 1 },
    );
    expect(run.status).toBe('completed');
    expect(run.now.getTime()).toBeGreaterThan(Date.parse('2026-01-01T00:05:00Z'));
  });

  test('a run that is cancelled while its beginning is recorded does not begin', async () => {
    const stop = new AbortController();
    const execute = vi.fn();
    const begun = Promise.withResolvers<boolean>();
    const script = new Script({}, 0, stop.signal);
    const clock = new TestClock(0);
    const counting = skill(execute);
    const standIns = new StandIns(counting, script);
    standIns.mainJob = 'j';
    const executors = new TestExecutors(script, clock, standIns);
    const context = {
      jobId: 'j',
      agentId: 'a',
      conversationId: 'c',
      organizationId: 'o',
      attempt: 1,
      now: 0,
    };
    const run = executors.run(
      { skill: 'own/v1.0/tested', input: '{"n":1}', context, timeoutMs: 1_000 },
      {
        onReport() {},
        onAsk: async () => null,
        confirmStart: () => begun.promise,
      },
    );

    stop.abort(new DOMException('The run was cancelled', 'AbortError'));
    begun.resolve(true);

    expect(await run.outcome).toEqual({ kind: 'aborted' });
    expect(execute).not.toHaveBeenCalled();
  });

  test('a model that answers after the end of the run records nothing', async () => {
    const answer = Promise.withResolvers<string>();
    const stop = new AbortController();
    const asking = skill((_input, ctx) => ctx.generate({ prompt: 'Hi' }));
    const models = () => {
      stop.abort();
      return answer.promise;
    };
    const endStep = vi.spyOn(Journal.prototype, 'endStep');
    onTestFinished(() => endStep.mockRestore());
    const run = await runSkill(asking, { n: 1 }, { models, signal: stop.signal });

    answer.resolve('late');
    await new Promise(setImmediate);

    expect(run.status).toBe('cancelled');
    expect(endStep).not.toHaveBeenCalled();
  });

  test('the database of a test is closed, however it ends', async () => {
    await runSkill(other, { n: 1 });
    const close = vi.spyOn(DatabaseSync.prototype, 'close');
    onTestFinished(() => close.mockRestore());

    await runSkill(other, { n: 1 }, { signal: AbortSignal.abort() });
    expect(close).toHaveBeenCalledTimes(1);
    const memory = [{ content: 'x', whose: 'user' as const }];
    await expect(runSkill(other, { n: 1 }, { memory })).rejects.toThrow(/for no user/);
    expect(close).toHaveBeenCalledTimes(2);
  });

  test('what is open when a run fails is interrupted', async () => {
    const run = await runSkill(
      skill(async (_input, ctx) => {
        void ctx.sleep('for ever', '300d');
        await ctx.step('fails', () => {
          throw new SkillError('no', { retryable: false });
        });
      }),
      { n: 1 },
    );
    expect(run.error).toMatchObject({ code: 'skill_execution_failed', message: 'no' });
    expect(run.steps.map(({ name, status }) => `${name}: ${status}`)).toEqual([
      'for ever: interrupted',
      'fails: failed',
    ]);
  });

  test('works on a Node that cannot copy a database', async () => {
    const own = Object.getOwnPropertyDescriptor(DatabaseSync.prototype, 'deserialize');
    Reflect.deleteProperty(DatabaseSync.prototype, 'deserialize');
    onTestFinished(() => {
      Object.defineProperty(DatabaseSync.prototype, 'deserialize', own as PropertyDescriptor);
    });
    expect(await runSkill(other, { n: 2 })).toMatchObject({ output: { twice: 4 } });
  });

  test('loads no server, no queue, no provider and no other database', () => {
    const code = `import { registerHooks } from 'node:module';
      const loaded = [];
      registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
      await import(${JSON.stringify(join(import.meta.dirname, 'testing.ts'))});
      console.log(JSON.stringify(loaded));`;
    const args = ['--input-type=module', '--eval', code];
    const loaded: string[] = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    const packages =
      /node_modules\/(?:fastify|@fastify|bullmq|ioredis|pg|@ai-sdk|undici|prom-client|ajv)\//;

    expect(loaded.filter((url) => packages.test(url))).toEqual([]);
    expect(loaded.length).toBeLessThan(1_100);
  });
});
