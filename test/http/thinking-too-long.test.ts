/** Prompts that a provider refuses for their length, because its window is smaller than the platform knows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { failureOf } from '../../src/adapters/models/failure.ts';
import { accessTo } from '../../src/adapters/models/providers.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { Fault, Reply, ScriptedRequest } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({
    environment: { MODEL_CONTEXT_TOKENS: '100000', MODEL_OUTPUT_TOKENS: '400' },
  });
});
afterAll(() => world.stop());

const echo = toolNamed('staged/v1.0/any');
const soFar = () => world.provider.requests.length;
const isSummary = ({ system }: ScriptedRequest) => system.startsWith('You summarize');
const lengthOf = ({ messages }: ScriptedRequest) => JSON.stringify(messages).length;

const refusals: Record<string, Fault> = {
  'openai/test': {
    status: 400,
    body: {
      error: {
        message:
          "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    },
  },
  'anthropic/test': {
    status: 400,
    body: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 9000 tokens > 4096' },
    },
  },
};

/** Calls the tool so many times with long results, and refuses prompts longer than `max` characters. */
function limited(fault: Fault, max: number, times = 8) {
  let turns = 0;
  return (request: ScriptedRequest): Reply => {
    if (lengthOf(request) > max) return { fault };
    if (isSummary(request)) return { text: 'SUMMARY of what was found' };
    turns += 1;
    if (turns > times) return { text: 'Done.' };
    const input = { input: { fact: `fact ${turns}`, filler: 'x y z '.repeat(150) } };
    return { toolCalls: [{ name: echo, id: `call_${turns}`, input }] };
  };
}

test.each(['openai/test', 'anthropic/test'])(
  '%s: the dialogue is summarized, and the turn is asked for again',
  async (model) => {
    const { task, steps, follow } = await newThinker(world.platform, {
      model,
      skills: ['staged/v1.0/any'],
    });
    const before = soFar();
    world.provider.script(limited(refusals[model] as Fault, 12_000));

    const job = await task('Collect EIGHT facts');

    expect(job).toMatchObject({ status: 'completed', attempt: 1, output: { answer: 'Done.' } });
    const asked = world.provider.requests.slice(before);
    expect(asked.some(isSummary)).toBe(true);
    const models = (await steps(job.job_id)).filter(({ kind }) => kind === 'model');
    const refused = models.filter(({ status }) => status === 'failed');
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused.length).toBeLessThanOrEqual(3);
    // A refusal costs nothing.
    for (const step of refused) expect(step).toMatchObject({ prompt_tokens: 0 });
    const events = await (await follow(job.job_id)).ended;
    const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
    expect(logs).toContainEqual(expect.stringMatching(/; a shorter prompt is sent$/));
    // No tool ran twice.
    const calls = (await steps(job.job_id)).filter(({ kind }) => kind === 'tool');
    expect(calls.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 'completed'));
  },
);

test('a result that alone is too long is cut', async () => {
  const { task } = await newThinker(world.platform, { skills: ['staged/v1.0/any'] });
  world.provider.script((request) => {
    if (lengthOf(request) > 12_000) return { fault: refusals['openai/test'] as Fault };
    if (request.toolResults.length > 0) return { text: 'Done.' };
    // The input of the call stays as it is, so the length is in the result alone.
    return {
      toolCalls: [{ name: toolNamed('staged/v1.0/any'), input: { input: 'x '.repeat(2_500) } }],
    };
  });

  expect(await task('Look')).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
});

test('what cannot get shorter fails with the words of the provider, after a bounded number of calls', async () => {
  const { task } = await newThinker(world.platform);
  const before = soFar();
  world.provider.script(() => ({ fault: refusals['openai/test'] as Fault }));

  const job = await task('Think '.repeat(2_000));

  expect(job).toMatchObject({
    status: 'failed',
    attempt: 1,
    error: {
      code: 'skill_execution_failed',
      message: expect.stringContaining('maximum context length is 4096'),
    },
  });
  expect(soFar() - before).toBe(1);
});

test('another model is asked for what cannot get shorter', async () => {
  const { task } = await newThinker(world.platform, {
    model: 'openai/small',
    fallback_models: ['anthropic/large'],
  });
  world.provider.script(({ model }) =>
    model === 'large' ? { text: 'Large.' } : { fault: { status: 413 } },
  );

  expect(await task('Think '.repeat(2_000))).toMatchObject({
    status: 'completed',
    output: { answer: 'Large.' },
  });
});

describe('a refusal is of the length, as', () => {
  const access = accessTo('openai', { apiKey: 'k' } as never);
  const refusedPart = (status: number, message: string, errorKind = '') =>
    failureOf(
      { kind: 'status', status, headers: new Headers(), message, errorKind, retryDelay: '' },
      { access, name: 'first', text: '', usage: { prompt: 0, completion: 0 }, seenBytes: 0 },
      systemClock,
    ).refuses;

  test.each([
    ['OpenAI', "This model's maximum context length is 128000 tokens. However, your messages…"],
    ['OpenAI in responses', 'Your input exceeds the context window of this model.'],
    ['Anthropic', 'prompt is too long: 208310 tokens > 200000 maximum'],
    ['Anthropic', 'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000'],
    ['Gemini', 'The input token count (1048577) exceeds the maximum number of tokens allowed'],
    ['xAI', "This model's maximum prompt length is 131072 but the request contains 537812 tokens."],
    [
      'Mistral',
      'Prompt contains 40000 tokens, too large for model with 32768 maximum context length',
    ],
    ['Gemini, for bytes', 'Request payload size exceeds the limit: 20971520 bytes.'],
    ['Groq', 'Please reduce the length of the messages or completion.'],
    ['Bedrock', 'Input is too long for requested model.'],
    ['llama.cpp', 'the request exceeds the available context size, try increasing it'],
    ['TGI', 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096'],
  ])('%s words it: %s', (_, message) => {
    expect(refusedPart(400, message)).toBe('length');
  });

  test('its code or its status say', () => {
    expect(refusedPart(400, 'no', 'context_length_exceeded invalid_request_error')).toBe('length');
    expect(refusedPart(413, '')).toBe('length');
    expect(refusedPart(400, 'messages: text content blocks must be non-empty')).toBeNull();
    expect(refusedPart(500, 'prompt is too long')).toBeNull();
  });
});
