import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  newOwnThinker,
  newThinker,
  startThinkers,
  type Thinkers,
  toolNamed,
} from '../support/thinkers.ts';

const tokensMax = 2_000;
let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({
    environment: {
      AGENT_TOKENS_MAX: `${tokensMax}`,
      MODEL_OUTPUT_TOKENS: '64',
      MODEL_SILENCE_TIMEOUT_MS: '1000',
      RETRY_BACKOFF_MS: '1',
    },
  });
});
afterAll(() => world.stop());

/** Every call uses what it may at most, and a moment; the most calls at a time, and their tokens. */
function scripted() {
  const seen = { underWay: 0, most: 0, tokens: 0, calls: 0 };
  world.provider.script(async ({ body }) => {
    const usage = { prompt: 10, completion: body.max_tokens ?? body.max_completion_tokens };
    seen.underWay += 1;
    seen.most = Math.max(seen.most, seen.underWay);
    await new Promise((resolve) => setImmediate(resolve));
    seen.underWay -= 1;
    seen.tokens += usage.prompt + usage.completion;
    seen.calls += 1;
    return { text: 'Done.', usage };
  });
  return seen;
}

const refused = {
  code: 'skill_execution_failed',
  message: expect.stringMatching(/The run has used \d+ tokens, of at most 2000/),
};

describe('a run that asks for more tokens than AGENT_TOKENS_MAX', () => {
  test('stays within the bound, with sixteen calls at a time, and every call gets an answer or an error', async () => {
    const { asking } = await newThinker(world.platform);
    const seen = scripted();
    const requests = Array.from({ length: 60 }, (_, n) => ({ prompt: `Ask ${n}`, caught: true }));

    const job = await asking([requests]);

    expect(job.status).toBe('completed');
    const answers = job.output[0];
    const failures = answers.filter((one: { code?: string }) => one.code !== undefined);
    expect(answers).toHaveLength(60);
    expect(failures).toHaveLength(60 - seen.calls);
    for (const failure of failures) expect(failure).toMatchObject(refused);
    expect(seen.most).toBeLessThanOrEqual(16);
    expect(seen.tokens).toBeLessThanOrEqual(tokensMax);
    expect(seen.tokens).toBeGreaterThan(tokensMax - 200);
  });

  test('ends, however its tools nest', async () => {
    const { asking } = await newThinker(world.platform, { skills: ['thinking/*'] });
    const name = toolNamed('thinking/v1.0/asks');
    const inner = Array.from({ length: 40 }, (_, n) => ({ prompt: `Inner ${n}`, caught: true }));
    world.provider.script(({ tools, toolResults }) =>
      tools.length === 0 || toolResults.length > 0
        ? { text: 'Done.', usage: { prompt: 10, completion: 40 } }
        : { toolCalls: [{ name, input: { requests: [inner] } }] },
    );
    const outer = Array.from({ length: 4 }, (_, n) => ({
      prompt: `Outer ${n}`,
      tools: true,
      caught: true,
    }));

    const job = await asking([outer]);

    expect(job.status).toBe('completed');
    expect(job.output[0].at(-1)).toMatchObject(refused);
  });
});

const logsOf = (events: readonly { event: string; data: { message: string } }[]) =>
  events.filter(({ event }) => event === 'log').map(({ data }) => data.message);

/** Its jobs do not wait for a provider: an attempt ends, and the next one asks again. */
const impatient = { model_settings: { wait_for_provider: 0 } };

describe('calls that a provider may charge', () => {
  test('is not asked for a third time in an attempt, nor for a fourth time in a job', async () => {
    const { task, steps } = await newOwnThinker(world, impatient);
    world.provider.script(() => ({ text: 'Once upon a time', fault: 'cut' }));

    const job = await task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 2,
      error: {
        code: 'upstream_unavailable',
        message: expect.stringMatching(/not asked again, because each of 3 calls may have been/),
      },
    });
    expect(await steps(job.job_id)).toHaveLength(3);
  });

  test('is asked for once in an attempt where the provider falls silent', async () => {
    const { task, steps } = await newOwnThinker(world, impatient);
    const hold = { after: 1, until: new Promise(() => {}) };
    world.provider.script(() => ({ text: 'Once upon a time', hold }));

    const job = await task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 3,
      error: {
        code: 'upstream_unavailable',
        message: expect.stringContaining('fell silent: it sent nothing for 1 s'),
      },
    });
    expect(await steps(job.job_id)).toHaveLength(3);
  });

  test('is counted where reasoning used it up before an answer, which fails the job', async () => {
    const { task, steps } = await newOwnThinker(world, {});
    const usage = { prompt: 20, completion: 64 };
    const thinking = { text: 'Let me think of everything', signature: '' };
    world.provider.script(() => ({ thinking, finish: 'length', usage }));

    const job = await task('Think');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: {
        code: 'skill_execution_failed',
        message: expect.stringContaining('used up all 64 tokens of its answer without saying'),
      },
      token_stats: { total_tokens: 84 },
    });
    expect(await steps(job.job_id)).toMatchObject([{ status: 'failed', completion_tokens: 64 }]);
  });
});

test('a run that waits for a budget reports it in its stream', async () => {
  const { platform, provider } = world;
  const thinker = await newThinker(platform);
  await thinker.put('/api/agents/thinker/budget', { tokens_per_day: 120 });
  const held = Promise.withResolvers<void>();
  const usage = { prompt: 5, completion: 5 };
  provider.script(() => ({ text: 'Yes.', usage, until: held.promise }));
  const before = provider.requests.length;
  const begin = (prompt: string) =>
    thinker.start('thinking/v1.0/asks', { requests: [{ prompt }] }, thinker.named);
  const first = await begin('First');
  await provider.received(before + 1);

  const second = await begin('Second');
  const following = await thinker.follow(second);
  await following.event(({ event }) => event === 'log', 'it says that it waits');
  held.resolve();
  const events = await following.ended;
  await (await thinker.follow(first)).ended;

  expect(events.at(-1)).toMatchObject({ data: { status: 'completed' } });
  expect(logsOf(events)).toEqual([
    expect.stringMatching(
      /^Waiting for a budget\. The agent thinker has used 0 of its 120 tokens for .*; calls under way hold back \d+$/,
    ),
    'The budget has tokens again: the call is made',
  ]);
});
