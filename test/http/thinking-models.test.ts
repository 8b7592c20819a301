import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startPlatform } from '../support/platform.ts';
import {
  answering,
  inTurn,
  type RecordedRequest,
  type Reply,
} from '../support/scripted-provider.ts';
import {
  newOwnThinker,
  newThinker,
  startWatchedThinkers,
  type Thinker,
  type WatchedThinkers,
} from '../support/thinkers.ts';
import { patient, waitFor } from '../support/wait-for.ts';
import { newWebhook } from '../support/webhooks.ts';

let world: WatchedThinkers;
beforeAll(async () => {
  world = await startWatchedThinkers();
});
afterAll(() => world.stop());

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;

/** Has the agent's failures and errors delivered to the receiver. */
const watched = (thinker: Thinker) =>
  newWebhook(thinker, world.receiver.origin, {
    agent_id: thinker.agentId,
    events: ['agent.error', 'skill.failed'],
  });

/** The events of an agent's run that failed, by their type, as a receiver gets them. */
async function toldOf(jobId: string, count: number) {
  const about = () =>
    world.receiver.requests
      .map(({ body }) => JSON.parse(body.toString()))
      .filter(({ data }) => data.job_id === jobId);
  await expect.poll(() => about().length, { timeout: 10_000 }).toBeGreaterThanOrEqual(count);
  return new Map(about().map((event) => [event.type ?? event.event, event]));
}

describe('without credentials that a provider accepts', () => {
  test.each([
    ['the agent has no model, and there is none for all', null, /no model/],
    ['its provider is not known', 'unknown/any', /provider unknown/],
  ])('a job fails with missing_credentials: %s', async (_, model, said) => {
    const platform = await startPlatform({ environment: { RETRY_BACKOFF_MS: '10' } });
    onTestFinished(() => platform.stop());
    const { task } = await newThinker(platform, { model });

    expect(await task('Think')).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'missing_credentials', message: expect.stringMatching(said) },
      token_stats: { total_tokens: 0 },
    });
  });

  test.each([
    ['openai/test', 401],
    ['openai/test', 403],
    ['anthropic/test', 401],
    ['anthropic/test', 403],
  ])(
    'a job fails with missing_credentials after one request: %s answers %i',
    async (model, status) => {
      const { task } = await newThinker(world.platform, { model });
      const before = soFar();
      world.provider.script(() => ({ fault: { status } }));

      const job = await task('Think');

      expect(job).toMatchObject({
        status: 'failed',
        attempt: 1,
        error: { code: 'missing_credentials', message: expect.stringMatching(/API_KEY/) },
      });
      expect(since(before)).toHaveLength(1);
    },
  );

  test('agent.error goes out beside skill.failed, and the conversation has failed', async () => {
    const thinker = await newThinker(world.platform);
    await watched(thinker);
    world.provider.script(() => ({ fault: { status: 401 } }));

    const job = await thinker.task('Think');

    const told = await toldOf(job.job_id, 2);
    expect([...told.keys()].sort()).toEqual(['agent.error', 'skill.failed']);
    expect(told.get('agent.error').data).toEqual({ ...job.error, job_id: job.job_id });
    const { body } = await thinker.get(`/api/conversations/${job.conversation_id}`);
    expect(body.status).toBe('failed');
  });
});

describe.each(['openai/test', 'anthropic/test'])('faults of %s', (model) => {
  const thinker = () => newOwnThinker(world, { model });

  test('429 with Retry-After: it is left alone for that long, and asked again', async () => {
    const { task, steps } = await thinker();
    const before = soFar();
    const busy: Reply = { fault: { status: 429, headers: { 'retry-after': '1' } } };
    world.provider.script(inTurn(busy, { text: 'Now.' }));

    const job = await task('Think');

    expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Now.' } });
    const [first, second] = since(before) as [RecordedRequest, RecordedRequest];
    expect(second.at - first.at).toBeGreaterThanOrEqual(1_000);
    expect(second.at - first.at).toBeLessThan(patient(4_000));
    expect(await steps(job.job_id)).toMatchObject([
      { turn: 1, status: 'failed', error: { code: 'upstream_unavailable' } },
      { turn: 1, status: 'completed' },
    ]);
  });

  test.each([
    ['500', { fault: { status: 500 } }],
    ['529', { fault: { status: 529 } }],
    ['a cut stream', { text: 'Once upon a time', fault: 'cut' }],
    ['a stream that ends early', { text: 'Once upon a time', fault: 'short' }],
    ['malformed JSON', { text: 'Once upon a time', fault: 'malformed' }],
    ['an error in the stream', { text: 'Once upon a time', fault: 'error-event' }],
  ] as [string, Reply][])('%s: it is asked again', async (_, fault) => {
    const { task, messages } = await thinker();
    const before = soFar();
    world.provider.script(inTurn(fault, { text: 'Whole.' }));

    const job = await task('Think');

    expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Whole.' } });
    expect(since(before)).toHaveLength(2);
    // What broke off is kept, for it may have cost something; it is not shown to the model again.
    expect((await messages(job.conversation_id)).at(-1).content).toBe('Whole.');
    expect(JSON.stringify(since(before)[1]?.messages)).not.toContain('Once');
  });

  test('a request that it refuses fails the job at once', async () => {
    const { task } = await thinker();
    const before = soFar();
    world.provider.script(() => ({ fault: { status: 400 } }));

    const job = await task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'skill_execution_failed', message: expect.stringContaining('scripted 400') },
    });
    expect(since(before)).toHaveLength(1);
  });
});

/** The retries of its job wait in place of its turns. */
const unwaited = { model_settings: { wait_for_provider: 0 } };

describe('a provider that stays out of order, for which an agent does not wait', () => {
  test('fails the job with upstream_unavailable once its attempts are used up', async () => {
    const thinker = await newOwnThinker(world, unwaited);
    await watched(thinker);
    const before = soFar();
    world.provider.script(() => ({
      fault: { status: 503, headers: { 'retry-after-ms': '5' } },
    }));

    const job = await thinker.task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 3,
      error: { code: 'upstream_unavailable', message: expect.stringContaining('503') },
      token_stats: { total_tokens: 0 },
    });
    // Three tries of a turn, three attempts of a job.
    expect(since(before)).toHaveLength(9);
    const told = await toldOf(job.job_id, 1);
    expect([...told.keys()]).toEqual(['skill.failed']);
  });

  test('is not called by the retry of the job before its Retry-After either', async () => {
    const { begin, get, post } = await newOwnThinker(world, {
      ...unwaited,
    });
    world.provider.script(() => ({ fault: { status: 429, headers: { 'retry-after': '40' } } }));

    const jobId = await begin('Think');
    const waiting = await waitFor(
      async () => {
        const { body } = await get(`/api/jobs/${jobId}`);
        return body.attempt === 1 && body.status === 'queued' ? body : null;
      },
      { describe: 'it waits for its second attempt' },
    );
    await post(`/api/jobs/${jobId}/cancel`);

    const waits = Date.parse(waiting.run_at) - Date.parse(waiting.created_at);
    expect(waits).toBeGreaterThanOrEqual(40_000);
    expect(waits).toBeLessThan(60_000);
  });
});

test('an answer that drips holds up no other run', async () => {
  const { begin, task, jobIn } = await newThinker(world.platform);
  world.provider.script(({ messages }) =>
    messages.at(-1).content === 'Slowly'
      ? { text: 'drop by drop by drop', piece: 1, everyMs: 100 }
      : { text: 'Quick.' },
  );
  const slow = await begin('Slowly');
  const quick = await Promise.all(Array.from({ length: 20 }, (_, n) => task(`Quickly ${n}`)));

  expect(new Set(quick.map(({ output }) => output.answer))).toEqual(new Set(['Quick.']));
  const { body } = await jobIn(slow, 'completed', 'failed');
  expect(body.output).toEqual({ answer: 'drop by drop by drop' });
  for (const { finished_at } of quick) expect(finished_at < body.finished_at).toBe(true);
});

test('an agent thinks with its own model from the next request on after it is changed', async () => {
  const thinker = await newThinker(world.platform, { model: 'openai/small' });
  world.provider.script(answering('Fine.'));
  const before = soFar();

  await thinker.task('One');
  await thinker.put('/api/agents/thinker', {
    model: 'anthropic/large/v2',
    instructions: 'Be kind.',
  });
  await thinker.task('Two');

  expect(since(before)).toMatchObject([
    { protocol: 'chat', model: 'small', system: expect.not.stringContaining('Be kind.') },
    { protocol: 'messages', model: 'large/v2', system: expect.stringMatching(/^Be kind\./) },
  ]);
});
