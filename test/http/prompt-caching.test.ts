import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anthropicCache, prefixCache } from '../support/prompt-cache.ts';
import type { Reply, ScriptedRequest } from '../support/scripted-provider.ts';
import {
  newThinker,
  startThinkers,
  type Thinkers,
  thinkersSkills,
  toolNamed,
} from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  // With the catalog there are more tools than a model is shown at once.
  const more = ['data', 'util', 'web'].map((category) =>
    join(import.meta.dirname, '../../src/core/skills/catalog', category),
  );
  world = await startThinkers({ skillsDirs: [...thinkersSkills, ...more] });
});
afterAll(() => world.stop());

const wordCount = toolNamed('text/v1.0/word-count');
const instructions = 'Count the words of each text that you find. '.repeat(150);
const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);

/** Calls tools in all turns but the last one, and reports what a cache counts. */
const looping =
  (turns: number, calls: number, count: ReturnType<typeof anthropicCache>) =>
  (request: ScriptedRequest): Reply => {
    const turn = request.messages.filter(({ role }) => role === 'assistant').length + 1;
    const usage = { ...count(request), completion: 20 };
    if (turn === turns) return { text: 'Done.', usage };
    const input = { text: `The words of turn ${turn} are these. `.repeat(20) };
    return { toolCalls: Array.from({ length: calls }, () => ({ name: wordCount, input })), usage };
  };

describe.each([
  ['anthropic/test', 'breakpoints', anthropicCache],
  ['openai/test', 'prefixes', prefixCache],
] as const)('a loop of 20 turns of %s, cached by %s', (model, _, cache) => {
  // A loop of more than 200 messages is summarized, which begins a new prefix.
  test.each([1, 8])(
    'with %i calls in each turn is billed as new for a quarter at most',
    async (calls) => {
      const { task } = await newThinker(world.platform, {
        model,
        skills: ['text/*'],
        instructions,
      });
      const before = world.provider.requests.length;
      world.provider.script(looping(20, calls, cache()));

      const job = await task('Count all of it');

      expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
      const costs = world.provider.requests.slice(before).map(({ cost }) => cost);
      expect(costs).toHaveLength(20);
      const prompt = sum(costs.map((cost) => cost?.prompt ?? 0));
      const read = sum(costs.map((cost) => cost?.cacheRead ?? 0));
      expect(prompt - read).toBeLessThan(prompt / 4);
      expect(job.token_stats.prompt_tokens).toBe(prompt);
    },
  );
});

describe('the requests of an Anthropic model', () => {
  const marksOf = ({ body }: ScriptedRequest) =>
    JSON.stringify(body).match(/"cache_control"/g) ?? [];

  test('have four marks at most, the last of them at their end', async () => {
    const { task } = await newThinker(world.platform, {
      model: 'anthropic/test',
      skills: ['text/*'],
      instructions,
    });
    const before = world.provider.requests.length;
    world.provider.script(looping(3, 2, anthropicCache()));

    await task('Count');

    const requests = world.provider.requests.slice(before);
    expect(requests.map((request) => marksOf(request).length)).toEqual([3, 4, 4]);
    for (const { messages } of requests) {
      expect(messages.at(-1).content.at(-1)).toHaveProperty('cache_control');
    }
  });

  test('without tools have a mark on their system text alone, because no other request follows', async () => {
    const { asking } = await newThinker(world.platform, { model: 'anthropic/test', instructions });
    const before = world.provider.requests.length;
    world.provider.script(() => ({ text: 'Hello.' }));

    await asking([{ prompt: 'Say hello' }]);

    const [request] = world.provider.requests.slice(before);
    expect(request?.body.system.at(-1)).toHaveProperty('cache_control');
    expect(marksOf(request as ScriptedRequest)).toHaveLength(1);
  });
});

test('tools are offered in the same order by two agents with the same skills in another order', async () => {
  const patterns = ['text/*', 'util/*'];
  const before = world.provider.requests.length;
  world.provider.script(() => ({ text: 'Hello.' }));

  for (const skills of [patterns, patterns.toReversed()]) {
    const { task } = await newThinker(world.platform, { model: 'openai/test', skills });
    await task('Say hello');
  }

  const [one, other] = world.provider.requests.slice(before);
  expect(one?.body.tools.length).toBeGreaterThan(5);
  expect(JSON.stringify(one?.body)).toBe(JSON.stringify(other?.body));
});

describe('a loop of 20 turns', () => {
  const newSum = (from: number) => {
    const costs = world.provider.requests.slice(from).map(({ cost }) => cost);
    const prompt = sum(costs.map((cost) => cost?.prompt ?? 0));
    return { prompt, billed: prompt - sum(costs.map((cost) => cost?.cacheRead ?? 0)), costs };
  };

  test.each([
    ['anthropic/test', anthropicCache],
    ['openai/test', prefixCache],
  ] as const)(
    'of %s that finds tools on its way is billed as new for a quarter at most',
    async (model, cache) => {
      const { task } = await newThinker(world.platform, { model, skills: ['*'], instructions });
      const count = cache();
      const before = world.provider.requests.length;
      const loop = looping(20, 1, count);
      world.provider.script((request) => {
        const turn = request.messages.filter(({ role }) => role === 'assistant').length + 1;
        if (turn !== 2 && turn !== 9) return loop(request);
        const query = turn === 2 ? 'convert a CSV file' : 'hash of a text';
        return {
          toolCalls: [{ name: 'find_tools', input: { query } }],
          usage: { ...count(request), completion: 20 },
        };
      });

      const job = await task('Count all of it');

      expect(job).toMatchObject({ status: 'completed' });
      const { prompt, billed, costs } = newSum(before);
      expect(costs).toHaveLength(20);
      const offered = world.provider.requests.slice(before).map(({ tools }) => tools.length);
      expect(offered[0]).toBeLessThan(offered[2] as number);
      expect(offered[2]).toBeLessThan(offered[9] as number);
      expect(billed).toBeLessThan(prompt / 4);
    },
  );

  test.each([
    ['anthropic/test', anthropicCache],
    ['openai/test', prefixCache],
  ] as const)(
    'of %s that is summarized on its way is billed as new for a quarter at most',
    async (model, cache) => {
      const { task, steps } = await newThinker(world.platform, {
        model,
        skills: ['text/*'],
        instructions,
        model_settings: { context_tokens: 20_000, max_output_tokens: 1_000 },
      });
      const count = cache();
      const before = world.provider.requests.length;
      let turn = 0;
      world.provider.script((request) => {
        const usage = { ...count(request), completion: 20 };
        if (request.system.startsWith('You summarize')) return { text: 'What was counted.', usage };
        turn += 1;
        if (turn === 20) return { text: 'Done.', usage };
        const input = { text: `The words of turn ${turn} are these. `.repeat(80) };
        return { toolCalls: [{ name: wordCount, input, id: `call_${turn}` }], usage };
      });

      const job = await task('Count all of it');

      expect(job).toMatchObject({ status: 'completed' });
      const made = await steps(job.job_id);
      expect(made.filter(({ kind }) => kind === 'summary').length).toBeGreaterThanOrEqual(1);
      const { prompt, billed } = newSum(before);
      expect(billed / prompt).toBeLessThan(0.25);
    },
  );
});
