/** Guards of agents (docs/guards.md). */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Step } from '../fixtures/skills/staged/play.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { answering, callingTools, inTurn } from '../support/scripted-provider.ts';
import { acting, gate, linesFile, play } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import {
  newThinker,
  runTask,
  startThinkers,
  type Thinker,
  type Thinkers,
  thinkersSkills,
  toolNamed,
} from '../support/thinkers.ts';
import { waitFor } from '../support/wait-for.ts';

let world: Thinkers;
beforeAll(async () => {
  const root = join(import.meta.dirname, '../..');
  const guards = ['src/core/skills/catalog/safety', 'test/fixtures/skills/guards'];
  world = await startThinkers({
    skillsDirs: [...thinkersSkills, ...guards.map((folder) => join(root, folder))],
    environment: { RETRY_BACKOFF_MS: '1' },
  });
});
afterAll(() => world.stop());

const watch = 'guards/v1.0/watch';
const redact = 'safety/v1.0/redact-personal-data';
const everything = ['message', 'tool_result', 'answer'];
const watching = (on: string | string[], input: object = {}, more: object = {}) => ({
  skill: watch,
  on: [on].flat(),
  input,
  ...more,
});
const newGuarded = (guards: object[], more: object = {}) =>
  newThinker(world.platform, { skills: ['staged/*', 'text/*'], guards, ...more });

const soFar = () => world.provider.requests.length;
/** What providers were sent since. */
const sentSince = (before: number) =>
  JSON.stringify(world.provider.requests.slice(before).map(({ body }) => body));

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of many shapes
type Body = any;

const guardsIn = async ({ steps }: Thinker, job: Body): Promise<Body[]> =>
  (await steps(job.job_id)).filter(({ kind }) => kind === 'guard');
const contentsOf = async ({ messages }: Thinker, job: Body) =>
  (await messages(job.conversation_id)).map(({ role, content }: Body) => `${role} ${content}`);
const linesIn = (log: string) =>
  existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
const render = 'text/v1.0/render-template';
/** A call whose result the call does not show. */
const rendering = (template: string, x: string) => [
  { name: toolNamed(render), id: 'call_a', input: { template, data: { x } } as object },
];

describe("the user's message", () => {
  test('reaches neither the model nor the conversation as it was where a guard replaces it', async () => {
    const thinker = await newGuarded([{ skill: redact, on: ['message'] }]);
    world.provider.script(answering('Noted.'));
    const before = soFar();

    const job = await thinker.task('I am ada@example.com.');
    await thinker.task('And now?', {}, { 'x-conversation-id': job.conversation_id });

    expect(sentSince(before)).not.toContain('ada@example.com');
    expect(world.provider.requests.at(-1)?.messages[1]).toMatchObject({
      content: 'I am [email].',
    });
    expect(await contentsOf(thinker, job)).toEqual([
      'user {"task":"I am [email]."}',
      'assistant Noted.',
      'user {"task":"And now?"}',
      'assistant Noted.',
    ]);
    expect(job.input).toEqual({ task: 'I am ada@example.com.' });
    expect(await guardsIn(thinker, job)).toMatchObject([
      {
        name: redact,
        status: 'completed',
        parent_step_id: null,
        guard: {
          on: 'message',
          tool: null,
          action: 'replace',
          reason: 'It has personal data: email.',
        },
      },
    ]);
  });

  test('that a guard refuses ends the job with guard_refused, asks no model and stays out of the conversation', async () => {
    const thinker = await newGuarded([watching('message')]);
    const before = soFar();

    const job = await thinker.task('NO');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'guard_refused', message: 'The message was refused: It says no.' },
    });
    expect(soFar()).toBe(before);
    expect(await contentsOf(thinker, job)).toEqual([
      'user {"task":"[refused by a guard: It says no.]"}',
    ]);
  });

  test('goes through the guards in their order', async () => {
    const log = linesFile();
    const thinker = await newGuarded([
      { skill: redact, on: ['message'] },
      watching('answer', { log }),
      watching('message', { log }),
    ]);
    world.provider.script(answering('Fine.'));

    await thinker.task('10.1.2.3 SECRET');

    expect(linesIn(log)).toEqual(['message - [ip] SECRET', 'answer - Fine.']);
    expect(world.provider.requests.at(-1)?.messages.at(-1)).toMatchObject({
      content: '[ip] [redacted]',
    });
  });
});

describe('a message that no guard has passed when its job ended', () => {
  test('is judged before a later job sends it to a model', async () => {
    const [held, log] = [gate(), linesFile()];
    const thinker = await newGuarded([watching('message', { log, until: held.path })]);
    world.provider.script(answering('Fine.'));
    const before = soFar();
    const jobId = await thinker.begin('The SECRET is out.');
    await waitFor(() => linesIn(log).length === 1, { describe: 'the guard has begun' });
    const { body } = await thinker.get(`/api/jobs/${jobId}`);
    const on = { ...thinker.named, 'x-conversation-id': body.conversation_id };

    const next = await thinker.post(
      `/api/${runTask}`,
      { task: 'Answer the above.' },
      { ...on, 'x-conversation-mode': 'interrupt' },
    );
    await thinker.jobIn(jobId, 'cancelled');
    const fork = await thinker.post(`/api/conversations/${body.conversation_id}/fork`, {});
    held.open();
    const { body: job } = await thinker.jobIn(next.body.job_id, 'completed');
    await thinker.task('In the fork', {}, { 'x-conversation-id': fork.body.id });
    await thinker.task('Again', {}, on);

    const requests = world.provider.requests.slice(before);
    for (const { messages } of requests) {
      expect(messages[1]).toMatchObject({ content: 'The [redacted] is out.' });
    }
    expect(requests).toHaveLength(3);
    expect(sentSince(before)).not.toContain('SECRET');
    const [first] = await contentsOf(thinker, job);
    expect(first).toBe('user {"task":"The [redacted] is out."}');
    expect(linesIn(log).map((line) => line.replace('message - ', ''))).toEqual([
      'The SECRET is out.',
      'Answer the above.',
      'The SECRET is out.',
      'In the fork',
      'The SECRET is out.',
      'Answer the above.',
      'Again',
    ]);
  });

  test('is sent once by a job that repeats it, and not where its guard fails', async () => {
    const thinker = await newGuarded([watching('message')]);
    world.provider.script(answering('Fine.'));
    const failed = await thinker.task('A NONSENSE SECRET');
    expect(failed.error.code).toBe('guard_failed');
    const on = { 'x-conversation-id': failed.conversation_id };
    await thinker.task('And now?', {}, on);
    expect(JSON.stringify(world.provider.requests.at(-1)?.messages)).not.toContain('NONSENSE');
    const creator = await newTenant(world.platform, { organization_id: thinker.organization });
    const unguarded = 'I am ada@example.com';
    const before = soFar();
    world.provider.script(() => ({ fault: { status: 400 } }));
    await creator.put('/api/agents/thinker', { guards: [] });
    await thinker.task(unguarded, {}, on);
    await creator.put('/api/agents/thinker', { guards: [{ skill: redact, on: ['message'] }] });
    world.provider.script(answering('Fine.'));

    await thinker.task(unguarded, {}, on);

    const last = JSON.stringify(world.provider.requests.at(-1)?.messages);
    expect(last.split('I am [email]')).toHaveLength(2);
    expect(soFar()).toBe(before + 2);
  });

  test('is changed in the conversation by the job that resumes it', async () => {
    const thinker = await newGuarded([watching('message')]);
    const failed = await thinker.task('A NONSENSE ada@example.com');
    const creator = await newTenant(world.platform, { organization_id: thinker.organization });
    await creator.put('/api/agents/thinker', { guards: [{ skill: redact, on: ['message'] }] });
    world.provider.script(answering('Fine.'));

    const resumed = await thinker.post(`/api/jobs/${failed.job_id}/retry`, { resume: true });
    const { body: job } = await thinker.jobIn(resumed.body.job_id, 'completed');

    expect(await contentsOf(thinker, job)).toEqual([
      'user {"task":"A NONSENSE [email]"}',
      'assistant Fine.',
    ]);
  });
});

describe('an earlier message of a user', () => {
  const guarded = async (thinker: Thinker, ...guards: object[]) => {
    const creator = await newTenant(world.platform, { organization_id: thinker.organization });
    await creator.put('/api/agents/thinker', { guards });
    return creator;
  };
  const saying = (...texts: string[]) =>
    acting(...texts.map((text): Step => ({ message: ['user', text] })));

  test('that the code of its job has added is changed alone', async () => {
    const thinker = await newGuarded([watching('message')]);
    world.provider.script(answering('Fine.'));
    const { body } = await thinker.post(`/api/${play}`, saying('One SECRET', 'Two'), {
      ...thinker.named,
      prefer: 'wait=30',
    });

    const job = await thinker.task('And now?', {}, { 'x-conversation-id': body.conversation_id });

    const said = (await contentsOf(thinker, job)).filter((line) => line.startsWith('user '));
    expect(said).toEqual([
      `user ${JSON.stringify(saying('One [redacted]', 'Two'))}`,
      'user One [redacted]',
      'user Two',
      'user {"task":"And now?"}',
    ]);
  });

  test('is judged for a trial alone by the guards of the trial', async () => {
    const thinker = await newGuarded([]);
    world.provider.script(answering('Fine.'));
    const { conversation_id } = await thinker.task('A SECRET');
    const on = { 'x-conversation-id': conversation_id };
    const [log, before] = [linesFile(), soFar()];
    const creator = await guarded(thinker);

    const trial = await creator.post(
      '/api/agents/thinker/trials',
      { agent: { guards: [watching('message')] }, input: { task: 'Try a.b@example.com' } },
      { ...on, prefer: 'wait=30' },
    );

    expect(trial.body.status).toBe('completed');
    expect(sentSince(before)).not.toContain('SECRET');
    const [first] = await contentsOf(thinker, trial.body);
    expect(first).toBe('user {"task":"A SECRET"}');
    await guarded(thinker, watching('message', { log }));
    await thinker.task('Now', {}, on);
    expect(linesIn(log)).toEqual(['message - Now', 'message - A SECRET']);
  });

  test('that is older than the newest 50 and unjudged is left out with its answer', async () => {
    const thinker = await newGuarded([]);
    const lines = Array.from({ length: 50 }, (_, n): Step => ({ message: ['user', `Line ${n}`] }));
    const old: Step[] = [
      { message: ['user', 'An old question'] },
      { message: ['assistant', 'An old answer.'] },
    ];
    const { body } = await thinker.post(`/api/${play}`, acting(...old, ...lines), {
      ...thinker.named,
      prefer: 'wait=30',
    });
    const on = { 'x-conversation-id': body.conversation_id };
    world.provider.script(answering('Fine.'));
    const log = linesFile();
    await guarded(thinker, watching('message', { log }));
    const before = soFar();

    await thinker.task('Now', {}, on);

    expect(sentSince(before)).not.toContain('An old');
    expect(sentSince(before)).toContain('Line 0');
    expect(linesIn(log)).toHaveLength(51);
  });

  test('for which a guard fails for now is left out once no attempt is left, and tried once by each later job', async () => {
    const log = linesFile();
    const thinker = await newGuarded([watching('message', { log })]);
    world.provider.script(answering('Fine.'));
    const { conversation_id } = await thinker.task('BREAK');
    const on = { 'x-conversation-id': conversation_id };
    const before = soFar();

    const job = await thinker.task('And now?', {}, on);
    const later = await thinker.task('And then?', {}, on);

    expect(job).toMatchObject({ status: 'completed', attempt: 3 });
    expect(later).toMatchObject({ status: 'completed', attempt: 1 });
    expect(sentSince(before)).not.toContain('BREAK');
    expect(linesIn(log).slice(-2)).toEqual(['message - And then?', 'message - BREAK']);
    expect((await contentsOf(thinker, later))[0]).toBe('user {"task":"BREAK"}');
    await guarded(thinker, { skill: redact, on: ['message'] });
    await thinker.task('And now again?', {}, on);
    expect(sentSince(before)).toContain('BREAK');
  });

  test('for which a guard fails for good is not tried by later jobs', async () => {
    const log = linesFile();
    const thinker = await newGuarded([watching('message', { log })]);
    world.provider.script(answering('Fine.'));
    const { conversation_id } = await thinker.task('NONSENSE');
    const on = { 'x-conversation-id': conversation_id };

    await thinker.task('And now?', {}, on);
    await thinker.task('And then?', {}, on);

    const tried = ['message - And now?', 'message - NONSENSE', 'message - And then?'];
    expect(linesIn(log).slice(1)).toEqual(tried);
  });
});

test('memories that only a repeated attempt recalls are judged, too', async () => {
  const [held, log] = [gate(), linesFile()];
  const thinker = await newGuarded(
    [
      watching('tool_result', { log }, { on_failure: 'pass' }),
      watching('tool_result', { until: held.path }),
    ],
    { recall: { limit: 1 } },
  );
  const path = '/api/agents/thinker/memories';
  const { body } = await thinker.post(path, { content: 'The harbour: BREAK', tag: 'facts' });
  world.provider.script(answering('Fine.'));
  const before = soFar();

  const jobId = await thinker.begin('The harbour?');
  await waitFor(() => linesIn(log).length === 1, { describe: 'the first guard has ended' });
  await thinker.put(`${path}/${body.id}`, { content: 'The harbour: SECRET' });
  held.open();
  await thinker.jobIn(jobId, 'completed');

  expect(linesIn(log)).toHaveLength(2);
  expect(sentSince(before)).toContain('[redacted]');
});

test.each(['NONSENSE', 'BREAK'])(
  'memories whose guard fails for %s are left out, and the job goes on',
  async (word) => {
    const thinker = await newGuarded([watching('tool_result')], { recall: { limit: 1 } });
    const memory = { content: `The harbour: ${word}`, tag: 'facts' };
    await thinker.post('/api/agents/thinker/memories', memory);
    world.provider.script(answering('Fine.'));
    const before = soFar();

    const job = await thinker.task('The harbour?');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Fine.' } });
    expect(sentSince(before)).not.toContain(word);
    const { ended } = await thinker.follow(job.job_id);
    expect(JSON.stringify(await ended)).toContain('What was recalled was left out');
  },
);

describe('the result of a tool', () => {
  test('is seen by the model, the conversation and the stream only as a guard leaves it', async () => {
    const log = linesFile();
    const thinker = await newGuarded([watching('tool_result', { log })]);
    world.provider.script(callingTools(rendering('A SE{{ x }}', 'CRET'), 'Done.'));
    const before = soFar();

    const jobId = await thinker.begin('Play');
    const follower = await thinker.follow(jobId);
    const { data } = await follower.event(({ event }) => event === 'tool_result', 'the result');
    const { body: job } = await thinker.jobIn(jobId, 'completed');

    const result = { text: 'A [redacted]' };
    expect(data.output).toEqual(result);
    expect(world.provider.requests.slice(before).at(-1)?.toolResults[0]).toContain(
      JSON.stringify(result),
    );
    expect(linesIn(log)).toEqual([`tool_result ${render} {"text":"A SECRET"}`]);
    expect((await contentsOf(thinker, job)).join()).not.toContain('SECRET');
    const [step] = await guardsIn(thinker, job);
    expect(step.guard).toMatchObject({ on: 'tool_result', tool: render, action: 'replace' });
  });

  test('that a guard refuses is an error for the model, and the run goes on', async () => {
    const thinker = await newGuarded([watching('tool_result')]);
    world.provider.script(callingTools(rendering('N{{ x }} way', 'O'), 'It may not be read.'));
    const before = soFar();

    const job = await thinker.task('Play');

    expect(job.output).toEqual({ answer: 'It may not be read.' });
    const [result] = world.provider.requests.slice(before).at(-1)?.toolResults ?? [];
    expect(result).toContain(`The result of ${render} was withheld: It says no.`);
    expect(sentSince(before)).not.toContain('NO way');
  });

  test('that is an error is in no step, and in the conversation as a guard leaves it', async () => {
    const thinker = await newGuarded([watching('tool_result')]);
    const fail = { message: 'A SECRET path', retryable: false };
    world.provider.script(
      callingTools([{ name: toolNamed(play), input: acting({ fail }) }], 'It failed.'),
    );

    const job = await thinker.task('Play');

    const steps = await thinker.steps(job.job_id);
    expect(steps.find(({ kind }) => kind === 'tool')).toMatchObject({
      status: 'failed',
      error: { code: 'skill_execution_failed', message: expect.stringMatching(/^Its message has/) },
    });
    expect(JSON.stringify(steps)).not.toContain('SECRET');
    const said = (await contentsOf(thinker, job)).join();
    expect(said).toContain('A [redacted] path');
    expect(said).toContain('"code":"skill_execution_failed"');
  });

  test('that is too long for a guard is an error for the model, and the run goes on', async () => {
    const thinker = await newGuarded([watching('tool_result', {}, { on_failure: 'pass' })]);
    const call = { name: toolNamed(play), input: { ...acting({}), long: 1_000_001 } };
    world.provider.script(callingTools([call], 'It was too long.'));
    const before = soFar();

    const job = await thinker.task('Play');

    expect(job.output).toEqual({ answer: 'It was too long.' });
    const [result] = world.provider.requests.slice(before).at(-1)?.toolResults ?? [];
    expect(result).toContain('was withheld: A text for a guard may have 1000000 characters');
  });

  test('is read on only as a guard has left it', async () => {
    const thinker = await newGuarded([watching('tool_result')]);
    const long = `${'x'.repeat(60_000)}SE{{ x }}`;
    const reading = {
      name: 'read_result',
      input: { call_id: 'call_a', offset: 59_990, length: 100 },
    };
    world.provider.script(
      inTurn({ toolCalls: rendering(long, 'CRET') }, { toolCalls: [reading] }, { text: 'Done.' }),
    );
    const before = soFar();

    await thinker.task('Play');

    expect(world.provider.requests.slice(before).at(-1)?.toolResults.at(-1)).toContain(
      'xxxx[redacted]',
    );
    expect(sentSince(before)).not.toContain('SECRET');
  });
});

describe('the answer', () => {
  test('is not streamed before a guard has passed it, and never what it replaces', async () => {
    const held = gate();
    const thinker = await newGuarded([watching('answer', { until: held.path })]);
    world.provider.script(answering('The SECRET is out.'));
    const before = soFar();

    const jobId = await thinker.begin('Tell');
    const follower = await thinker.follow(jobId);
    await world.provider.ended(before);
    const [answer] = await messagesWith(thinker, jobId, 'assistant');
    expect(answer.content).toMatch(/^\[held /);
    expect(follower.events.filter(({ event }) => event === 'token')).toEqual([]);
    const fork = await thinker.post(`/api/conversations/${answer.conversation_id}/fork`, {});
    expect(await contentsOf(thinker, { conversation_id: fork.body.id })).toEqual([
      'user {"task":"Tell"}',
    ]);
    held.open();
    const { body: job } = await thinker.jobIn(jobId, 'completed');
    await follower.event(({ event }) => event === 'status', 'the end');

    const said = 'The [redacted] is out.';
    expect(job.output).toEqual({ answer: said });
    const tokens = follower.events.filter(({ event }) => event === 'token');
    expect(tokens.map(({ data }) => data.text).join('')).toBe(said);
    expect(await contentsOf(thinker, job)).toEqual(['user {"task":"Tell"}', `assistant ${said}`]);
    world.provider.script(answering('Yes.'));
    await thinker.task('More', {}, { 'x-conversation-id': job.conversation_id });
    expect(JSON.stringify(world.provider.requests.at(-1)?.messages)).toContain(said);
  });

  test('that a guard refuses ends the job, and its users do not get it', async () => {
    const thinker = await newGuarded([watching('answer')]);
    world.provider.script(answering('NO, you fool.'));

    const job = await thinker.task('Tell');

    expect(job.error).toEqual({
      code: 'guard_refused',
      message: 'The answer was refused: It says no.',
    });
    expect(await contentsOf(thinker, job)).toEqual([
      'user {"task":"Tell"}',
      'assistant [refused by a guard: It says no.]',
    ]);
    expect(JSON.stringify(await thinker.steps(job.job_id))).not.toContain('fool');
  });

  test('before a call of a tool is guarded, too', async () => {
    const thinker = await newGuarded([watching('answer')]);
    world.provider.script(
      inTurn({ text: 'SECRET first.', toolCalls: rendering('a{{ x }}', 'b') }, { text: 'Done.' }),
    );

    const job = await thinker.task('Play');

    expect(job.status).toBe('completed');
    expect(await contentsOf(thinker, job)).toContain('assistant [redacted] first.');
  });

  test('that it replaces goes back to a provider that wants its reasoning back, without that', async () => {
    const thinker = await newGuarded([watching('answer')]);
    const thinking = { text: 'A SECRET thought', signature: 's' };
    const toolCalls = rendering('a{{ x }}', 'b').map((call) => ({ ...call, id: 'call_thought' }));
    const calling = { thinking, text: 'SECRET first.', toolCalls };
    world.provider.script(inTurn(calling, { text: 'Done.' }));
    const before = soFar();

    const job = await thinker.task('Play');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
    expect(sentSince(before)).toContain('[withheld]');
    expect(sentSince(before)).not.toContain('SECRET');
  });
});

async function messagesWith({ get, messages }: Thinker, jobId: string, role: string) {
  for (;;) {
    const { body } = await get(`/api/jobs/${jobId}`);
    const found = (await messages(body.conversation_id)).filter((one: Body) => one.role === role);
    if (found.length > 0) return found;
  }
}

describe('a guard that fails', () => {
  test.each([
    ['BREAK', 3, /^The guard guards\/v1\.0\/watch failed: it broke/],
    ['NONSENSE', 1, /no verdict/],
  ])('for %s refuses the text with guard_failed', async (task, attempts, message) => {
    const thinker = await newGuarded([watching('message')]);
    const before = soFar();

    const job = await thinker.task(task);

    expect(job).toMatchObject({ status: 'failed', attempt: attempts });
    expect(job.error).toMatchObject({
      code: 'guard_failed',
      message: expect.stringMatching(message),
    });
    expect(soFar()).toBe(before);
    const [step] = await guardsIn(thinker, job);
    expect(step).toMatchObject({ status: 'failed', guard: { action: null } });
  });

  test('lets it pass where its agent says so', async () => {
    const thinker = await newGuarded([watching('message', {}, { on_failure: 'pass' })]);
    world.provider.script(answering('Heard.'));

    const job = await thinker.task('BREAK');

    expect(job.output).toEqual({ answer: 'Heard.' });
    expect(await guardsIn(thinker, job)).toMatchObject([
      { status: 'failed', error: { message: 'it broke' }, guard: { action: 'pass' } },
    ]);
  });

  test('and lets a text pass does not run again in a repeated attempt', async () => {
    const log = linesFile();
    const passing = watching('message', { log }, { on_failure: 'pass' });
    const thinker = await newGuarded([passing, watching('message')]);

    const job = await thinker.task('BREAK');

    expect(job).toMatchObject({ status: 'failed', attempt: 3, error: { code: 'guard_failed' } });
    expect(linesIn(log)).toHaveLength(1);
  });

  test.each([
    ['LONG 1000001', /may have 1000000 bytes of JSON, and this one has 1000003$/],
    ['LONG 1100000', /the output is larger than 1024 KiB of JSON$/],
  ])('to give a text within its bounds, as for %s, says so', async (task, message) => {
    const thinker = await newGuarded([watching('message')]);

    const job = await thinker.task(task);

    expect(job).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'guard_failed' } });
    expect(job.error.message).toMatch(message);
  });

  test('is no one that gives as long a text as an output may have', async () => {
    const thinker = await newGuarded([watching('answer')]);
    world.provider.script(answering('LONG 999998'));

    const job = await thinker.task('Work');

    expect(job.output.answer).toHaveLength(999_998);
  });

  test('runs again in a resumed job, where its model is asked anew, but none that let the text pass', async () => {
    const [passed, letting, failing] = [linesFile(), linesFile(), linesFile()];
    const thinker = await newGuarded([
      watching('message', { log: passed }),
      watching('answer', { log: letting }, { on_failure: 'pass' }),
      watching('answer', { log: failing, asks: true }),
    ]);
    world.provider.script(answering('NONSENSE'));
    const before = soFar();
    const failed = await thinker.task('Work');
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'guard_failed' } });
    expect([passed, letting, failing].map((log) => linesIn(log).length)).toEqual([1, 1, 1]);
    expect(soFar()).toBe(before + 2);

    const resumed = await thinker.post(`/api/jobs/${failed.job_id}/retry`, { resume: true });
    const { body: job } = await thinker.jobIn(resumed.body.job_id, 'failed');

    expect(job.error.code).toBe('guard_failed');
    expect([passed, letting, failing].map((log) => linesIn(log).length)).toEqual([1, 1, 2]);
    expect(soFar()).toBe(before + 3);
    const verdicts = (await guardsIn(thinker, job)).map(({ guard }) => guard.action);
    expect(verdicts).toEqual(['pass', 'pass', null]);
  });

  test('has as many attempts where it asks its model something else in each', async () => {
    const thinker = await newGuarded([watching('message', { asks: 'anew' })]);
    world.provider.script(answering('Judged.'));
    const before = soFar();

    const job = await thinker.task('BREAK');

    expect(job).toMatchObject({ status: 'failed', attempt: 3, error: { code: 'guard_failed' } });
    expect(soFar()).toBe(before + 3);
  });

  test('and asks its model for lack of a budget ends the job with budget_exceeded', async () => {
    const guard = watching('message', { asks: true }, { on_failure: 'pass' });
    const thinker = await newGuarded([guard]);
    const budget = await thinker.put('/api/agents/thinker/budget', { tokens_per_day: 1 });
    expect(budget.status).toBe(200);

    expect((await thinker.task('Hello')).error.code).toBe('budget_exceeded');
  });
});

describe('the model that a guard asks', () => {
  test('gets neither instructions nor tools, is paid for by the job, and no stream or kept prompt has what it says', async () => {
    const thinker = await newGuarded([watching(everything, { asks: true })], {
      instructions: 'Speak as a pirate.',
      keep_prompts: true,
    });
    const usage = { prompt: 10, completion: 5 };
    world.provider.script(({ messages }) =>
      JSON.stringify(messages).includes('Judge: ')
        ? { text: 'Judged.', usage }
        : { text: 'Ahoy.', usage },
    );
    const before = soFar();

    const job = await thinker.task('Hello');

    const judging = world.provider.requests
      .slice(before)
      .filter(({ messages }) => JSON.stringify(messages).includes('Judge: '));
    expect(judging).toHaveLength(2);
    for (const { tools, system } of judging) expect([tools, system]).toEqual([[], '']);
    expect(job.token_stats).toMatchObject({ prompt_tokens: 30, completion_tokens: 15 });
    expect(await contentsOf(thinker, job)).toEqual([
      'user {"task":"Hello"}',
      'system Judged.',
      'assistant Ahoy.',
      'system Judged.',
    ]);
    const follower = await thinker.follow(job.job_id);
    await follower.event(({ event }) => event === 'status', 'the end');
    expect(JSON.stringify(follower.events)).not.toContain('Judged.');
    const calls = (await thinker.steps(job.job_id)).filter(({ kind }) => kind === 'model');
    expect(calls.map(({ prompt }) => prompt)).toEqual(['off', 'kept', 'off']);
  });
});

describe('a repeated attempt', () => {
  test('runs no guard and no tool again that has ended, and asks no model again', async () => {
    const log = linesFile();
    const effects = linesFile();
    const thinker = await newGuarded([watching(everything, { log })]);
    const call = { name: toolNamed('staged/v1.0/effect'), input: { log: effects } };
    world.provider.script(callingTools([call], 'A SECRET.'));
    const before = soFar();

    const job = await thinker.asking([{ prompt: 'Work', tools: true }], { failures: 1 });

    expect(job).toMatchObject({ status: 'completed', attempt: 2 });
    expect(job.output).toMatchObject([{ text: 'A [redacted].' }]);
    expect(linesIn(log).map((line) => line.split(' ')[0])).toEqual([
      'message',
      'tool_result',
      'answer',
    ]);
    expect(linesIn(effects)).toHaveLength(2);
    expect(soFar()).toBe(before + 2);
  });

  test('guards a tool result and an answer that were held, without the call behind them', async () => {
    const effects = linesFile();
    const thinker = await newGuarded([watching('tool_result')]);
    const log = linesFile();
    const call = {
      name: toolNamed(play),
      input: { ...acting({ touch: effects }), output: 'BREAK' },
    };
    world.provider.script(callingTools([call], 'Done.'));
    const before = soFar();

    const failed = await thinker.task('Work');

    // The attempt that has got a turn of the model is not counted.
    expect(failed).toMatchObject({ status: 'failed', attempt: 4, error: { code: 'guard_failed' } });
    expect(soFar()).toBe(before + 1);
    const tools = (await thinker.steps(failed.job_id)).filter(({ kind }: Body) => kind === 'tool');
    expect(tools).toHaveLength(1);
    const creator = await newTenant(world.platform, { organization_id: thinker.organization });
    await creator.put('/api/agents/thinker', {
      guards: [watching(everything, { log }, { on_failure: 'pass' })],
    });
    const resumed = await thinker.post(`/api/jobs/${failed.job_id}/retry`, { resume: true });
    const { body: job } = await thinker.jobIn(resumed.body.job_id, 'completed');

    expect(job.output).toEqual({ answer: 'Done.' });
    expect(soFar()).toBe(before + 2);
    expect(linesIn(log)).toEqual(['message - Work', `tool_result ${play} BREAK`, 'answer - Done.']);
  });
});

describe('a verdict on record', () => {
  const moderating = (words: string[]) => ({
    skill: 'safety/v1.0/moderate',
    on: ['message'],
    input: { words },
  });
  const resumedWith = async (thinker: Thinker, failed: Body, guards: object[]) => {
    const creator = await newTenant(world.platform, { organization_id: thinker.organization });
    await creator.put('/api/agents/thinker', { guards });
    const { body } = await thinker.post(`/api/jobs/${failed.job_id}/retry`, { resume: true });
    return (await thinker.jobIn(body.job_id, 'completed', 'failed')).body;
  };

  test('is not that of a guard whose input is another', async () => {
    const thinker = await newGuarded([moderating(['harbour'])]);
    world.provider.script(answering('Fine.'));
    const failed = await thinker.task('The harbour?');

    const job = await resumedWith(thinker, failed, [moderating(['zebra'])]);

    expect(failed.error.code).toBe('guard_refused');
    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Fine.' } });
  });

  test('is not about a text that another guard leaves otherwise now', async () => {
    const thinker = await newGuarded([moderating(['zebra']), watching('message')]);
    world.provider.script(() => ({ fault: { status: 400 } }));
    const failed = await thinker.task('SECRET ada@example.com');
    world.provider.script(answering('Fine.'));

    const changed = [{ skill: redact, on: ['message'] }, watching('message')];
    const job = await resumedWith(thinker, failed, changed);

    expect(job.status).toBe('completed');
    const said = '[redacted] [email]';
    expect(world.provider.requests.at(-1)?.messages.at(-1)).toMatchObject({ content: said });
    expect((await contentsOf(thinker, job))[0]).toBe(`user {"task":"${said}"}`);
  });
});

describe('a message that steers a run', () => {
  /** A run that plays, steered by tasks, until it has ended. */
  const steered = async (thinker: Thinker, ...tasks: string[]) => {
    const tool = gate();
    const input = { ...acting({ until: tool.path }), output: 'played' };
    world.provider.script(
      inTurn({ toolCalls: [{ name: toolNamed(play), input }] }, { text: 'Done.' }),
    );
    const jobId = await thinker.begin('Work');
    const follower = await thinker.follow(jobId);
    await follower.event(({ event }) => event === 'tool_call', 'the tool is called');
    const { body } = await thinker.get(`/api/jobs/${jobId}`);
    const steering = {
      ...thinker.named,
      'x-conversation-id': body.conversation_id,
      'x-conversation-mode': 'steer',
    };
    const jobs: string[] = [];
    for (const task of tasks) {
      const { body: begun } = await thinker.post(`/api/${runTask}`, { task }, steering);
      jobs.push(begun.job_id);
    }
    tool.open();
    const { body: job } = await thinker.jobIn(jobId, 'completed', 'failed');
    return { job, jobs };
  };

  test('is guarded: the model gets a note of one that is refused', async () => {
    const thinker = await newGuarded([watching('message')]);
    const before = soFar();

    const { job } = await steered(thinker, 'A SECRET', 'NO');

    const sent = JSON.stringify(world.provider.requests.slice(before).at(-1)?.messages);
    expect(sent).toContain('A [redacted]');
    expect(sent).toContain('[refused by a guard: It says no.]');
    expect(sent).not.toMatch(/SECRET|"NO"/);
    expect((await contentsOf(thinker, job)).join()).not.toMatch(/SECRET|"NO"/);
  });

  test.each(['NONSENSE', 'BREAK'])('and whose guard fails for %s fails alone', async (task) => {
    const thinker = await newGuarded([watching('message')]);
    const before = soFar();

    const { job, jobs } = await steered(thinker, task, 'Heard');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
    expect(sentSince(before)).toContain('Heard');
    const { body: failed } = await thinker.jobIn(jobs[0] as string, 'completed', 'failed');
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'guard_failed' } });
    expect(sentSince(before)).not.toContain(task);
  });
});

test('the agents that a model gives tasks to have guards of their own', async () => {
  const thinker = await newGuarded([watching('tool_result')]);
  const creator = await newTenant(world.platform, { organization_id: thinker.organization });
  const other = { id: 'other', guards: [watching('message')] };
  expect((await creator.post('/api/agents', other)).status).toBe(201);
  await creator.put('/api/agents/thinker', { agents: ['other'], skills: ['agent/*'] });
  world.provider.script(({ messages, toolResults }) => {
    if (JSON.stringify(messages).includes('Ask for the')) {
      const call = { name: 'agent__other', input: { task: 'Give the SECRET' } };
      return toolResults.length > 0 ? { text: 'Done.' } : { toolCalls: [call] };
    }
    return { text: 'A SECRET of mine' };
  });
  const before = soFar();

  const job = await thinker.task('Ask for the thing');

  expect(job.status).toBe('completed');
  const sent = sentSince(before);
  expect(sent).toContain('Give the [redacted]');
  expect(sent).toContain('A [redacted] of mine');
});

test('a trial has guards that are not saved', async () => {
  const thinker = await newGuarded([]);
  const trial = { input: { task: 'NO' }, agent: { guards: [watching('message')] } };

  const begun = await thinker.post('/api/agents/thinker/trials', trial);

  const { body } = await thinker.jobIn(begun.body.job_id, 'failed');
  expect(body.error.code).toBe('guard_refused');
  expectInvalid(
    await thinker.post('/api/agents/thinker/trials', {
      ...trial,
      agent: { guards: [{ skill: 'a/v1.0/b', on: ['message'] }] },
    }),
    'agent.guards.0.skill',
  );
});

test('what a trial with other guards leaves is sent to later trials alone', async () => {
  const thinker = await newGuarded([watching(everything)]);
  const creator = await newTenant(world.platform, { organization_id: thinker.organization });
  const call = { name: toolNamed(play), input: { ...acting({}), output: 'A SECRET result' } };
  world.provider.script(callingTools([call], 'A SECRET answer'));
  const unguarded = { agent: { guards: [] }, input: { task: 'Play' } };
  const path = '/api/agents/thinker/trials';
  const { body: trial } = await creator.post(path, unguarded, { prefer: 'wait=30' });
  expect(trial.status).toBe('completed');
  const on = { 'x-conversation-id': trial.conversation_id };
  world.provider.script(answering('Fine.'));
  const before = soFar();

  await thinker.task('And now?', {}, on);
  expect(world.provider.requests.slice(before).at(-1)?.messages).toHaveLength(2);
  await creator.post(path, unguarded, { ...on, prefer: 'wait=30' });

  const last = JSON.stringify(world.provider.requests.at(-1)?.messages);
  expect(last).toContain('A SECRET result');
  expect(last).toContain('A SECRET answer');
  expect(last).toContain('And now?');
});

test('a trial without the guards of its agent is not repeated without the scope approvals', async () => {
  const thinker = await newGuarded([watching('message')], { skills: [] });
  world.provider.script(() => ({ fault: { status: 400 } }));
  const trial = { input: { task: 'NO' }, agent: { guards: [] } };
  const begun = await thinker.post('/api/agents/thinker/trials', trial);
  await thinker.jobIn(begun.body.job_id, 'failed');
  const repeatedBy = async (scopes: string[]) => {
    const { post } = await newTenant(world.platform, {
      organization_id: thinker.organization,
      scopes,
    });
    return post(`/api/jobs/${begun.body.job_id}/retry`);
  };

  const scopes = ['agent', 'guards'];
  expectRefusal(await repeatedBy(scopes), 403, 'insufficient_scope');
  expect((await repeatedBy([...scopes, 'approvals'])).status).toBe(202);
});

describe('guards are refused', () => {
  test.each([
    ['guards.0.skill', [{ skill: 'no/v1.0/such', on: ['answer'] }]],
    ['guards.0.skill', [{ skill: 'text/v1.0/word-count', on: ['answer'] }]],
    ['guards.0.skill', [{ skill: 'safety/*', on: ['answer'] }]],
    [
      'guards.1.input.kinds.0',
      [watching('answer'), { skill: redact, on: ['answer'], input: { kinds: ['name'] } }],
    ],
    ['guards.0.input.speed', [{ skill: redact, on: ['answer'], input: { speed: 1 } }]],
    ['guards.0.input.text', [{ skill: redact, on: ['answer'], input: { text: 'x' } }]],
    ['guards.0.on', [{ skill: redact, on: [] }]],
    ['guards.0.on.0', [{ skill: redact, on: ['tool'] }]],
    ['guards.0.on_failure', [{ skill: redact, on: ['answer'], on_failure: 'retry' }]],
    ['guards', Array.from({ length: 11 }, () => watching('answer'))],
    ['guards', [watching('answer', { log: 'x'.repeat(65_536) })]],
  ])('with 400 on %s', async (field, guards) => {
    const { post, put } = await newTenant(world.platform);
    expectInvalid(await post('/api/agents', { id: 'other', guards }), field);
    expectInvalid(await put('/api/agents/default', { guards }), field);
  });

  test('with 403 without the scope approvals, or without that of their skills', async () => {
    const { organization } = await newGuarded([watching('answer')], { skills: [] });
    const withScopes = (scopes: string[]) =>
      newTenant(world.platform, { organization_id: organization, scopes });
    const unguarded = await (await withScopes(['guards'])).put('/api/agents/thinker', {
      guards: [],
    });
    expectRefusal(unguarded, 403, 'insufficient_scope');
    const guarded = await (await withScopes(['approvals'])).put('/api/agents/thinker', {
      guards: [],
    });
    expectRefusal(guarded, 403, 'insufficient_scope');
    const both = await withScopes(['approvals', 'guards']);
    expect((await both.put('/api/agents/thinker', { guards: [] })).status).toBe(200);
  });

  test('but run for keys without the scope of their skills', async () => {
    const { organization } = await newGuarded([watching('message')], { skills: [] });
    const narrow = await newTenant(world.platform, {
      organization_id: organization,
      scopes: ['agent'],
    });

    const { body } = await narrow.run(runTask, { task: 'NO' }, { 'x-agent-id': 'thinker' });

    expect(body.error.code).toBe('guard_refused');
  });
});
