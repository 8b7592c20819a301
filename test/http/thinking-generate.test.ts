import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startPlatform } from '../support/platform.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { environmentOf, newThinker, startThinkers, type Thinkers } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;

const schema = {
  type: 'object',
  required: ['city', 'people'],
  additionalProperties: false,
  properties: { city: { type: 'string' }, people: { type: 'integer' } },
};
const right = { city: 'Bern', people: 134_000 };
const asked = { prompt: 'Which city?', schema };

test("an operator's own skill from SKILLS_DIR calls the model of its agent", async () => {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-skills-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  writeFileSync(
    join(directory, 'haiku.ts'),
    `export default {
      category: 'poems', name: 'haiku', version: 'v1.0', displayName: 'Haiku',
      description: 'Writes a haiku.', parameters: { type: 'object' }, output: {},
      async run(input: { on: string }, ctx: any) {
        const { text, turns, usage } = await ctx.generate({
          prompt: 'A haiku on ' + input.on, system: 'Be short.', temperature: 0.5, maxOutputTokens: 99,
        });
        return { text, turns, usage };
      },
    };`,
  );
  const platform = await startPlatform({
    environment: { ...environmentOf(world.provider), SKILLS_DIR: directory },
  });
  onTestFinished(() => platform.stop());
  const { run, named } = await newThinker(platform, { instructions: 'You are a poet.' });
  const before = soFar();
  world.provider.script(answering('old pond', { usage: { prompt: 9, completion: 2 } }));

  const { body: job } = await run('poems/v1.0/haiku', { on: 'frogs' }, named);

  expect(job).toMatchObject({
    status: 'completed',
    output: {
      text: 'old pond',
      turns: 1,
      usage: {
        ...{ prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
        ...{ cost_usd: null, cost_is_partial: true },
      },
    },
  });
  const [request] = since(before);
  expect(request).toMatchObject({
    model: 'test',
    system: 'You are a poet.\n\nBe short.',
    tools: [],
    body: { temperature: 0.5 },
    messages: [{}, { role: 'user', content: 'A haiku on frogs' }],
  });
  expect(JSON.stringify(request?.body)).toMatch(/"max(_completion)?_tokens":99/);
});

describe.each(['openai/test', 'anthropic/test'])('an answer by a schema, of %s', (model) => {
  const thinker = () => newThinker(world.platform, { model });

  test.each([
    ['as it is', JSON.stringify(right)],
    ['in a fenced block', `\`\`\`json\n${JSON.stringify(right)}\n\`\`\``],
    ['with space around', `\n ${JSON.stringify(right, null, 2)} \n`],
  ])('comes parsed: %s', async (_, text) => {
    world.provider.script(answering(text));

    const job = await (await thinker()).asking([asked]);

    expect(job).toMatchObject({ status: 'completed', output: [{ text, output: right }] });
  });

  test('that violates the schema is requested again with its faults', async () => {
    const { asking, tokens } = await thinker();
    const before = soFar();
    const usage = { prompt: 10, completion: 1 };
    world.provider.script(
      inTurn(
        { text: 'Bern, I think', usage },
        { text: '{"city":"Bern"}', usage },
        { text: JSON.stringify(right), usage },
      ),
    );

    const job = await asking([asked]);

    expect(job).toMatchObject({
      status: 'completed',
      output: [{ output: right, turns: 3, usage: { total_tokens: 33 } }],
      token_stats: { total_tokens: 33 },
    });
    expect(await tokens(job.conversation_id)).toMatchObject({ total_tokens: 33 });
    const requests = since(before).map(({ messages }) => JSON.stringify(messages.at(-1)));
    expect(requests).toHaveLength(3);
    expect(requests[1]).toMatch(/not JSON/);
    expect(requests[2]).toMatch(/people is required/);
  });

  test('that stays wrong fails the run after four of them, and is not asked for by a retry', async () => {
    const { asking } = await thinker();
    const before = soFar();
    world.provider.script(answering('{"city":"Bern"}'));

    const job = await asking([asked]);

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: {
        code: 'skill_execution_failed',
        message: expect.stringMatching(/wrong 4 times.*people is required/),
      },
    });
    expect(since(before)).toHaveLength(4);
  });
});

describe('ctx.generate', () => {
  test.each([
    ['a schema that is none', { prompt: 'x', schema: { type: 'no-such-type' } }, /schema/],
    ['a schema that is no object', { prompt: 'x', schema: 'string' }, /schema/],
    ['an empty prompt', { prompt: '' }, /prompt/],
    ['a prompt that is no text', { prompt: 7 }, /prompt/],
    ['a word that is not known', { prompt: 'x', promt: 'y' }, /promt/],
    ['tools that are none', { prompt: 'x', tools: 'text/*' }, /tools/],
    ['turns that are none', { prompt: 'x', maxTurns: 0 }, /maxTurns/],
    ['a temperature beyond 2', { prompt: 'x', temperature: 3 }, /temperature/],
  ])('refuses %s before it costs anything, once', async (_, request, said) => {
    const { asking } = await newThinker(world.platform);
    const before = soFar();

    const job = await asking([request]);

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: { code: 'skill_execution_failed', message: expect.stringMatching(said) },
      token_stats: { total_tokens: 0 },
    });
    expect(since(before)).toEqual([]);
  });

  test('allows many concurrent requests, each with its own answer', async () => {
    const { asking, tokens } = await newThinker(world.platform);
    world.provider.script(({ messages }) => ({
      text: `To: ${messages.at(-1).content}`,
      usage: { prompt: 3, completion: 1 },
    }));
    const requests = Array.from({ length: 40 }, (_, n) => ({ prompt: `question ${n}` }));

    const job = await asking([requests]);

    const texts = job.output[0].map(({ text }: { text: string }) => text);
    expect(texts).toEqual(requests.map(({ prompt }) => `To: ${prompt}`));
    expect(job.token_stats).toMatchObject({ total_tokens: 160 });
    expect(await tokens(job.conversation_id)).toMatchObject({ total_tokens: 160 });
  });

  test('that sends two equal requests gets two answers, and the same two when it is repeated', async () => {
    const { asking } = await newThinker(world.platform);
    const before = soFar();
    world.provider.script(inTurn({ text: 'heads' }, { text: 'tails' }, { text: 'the edge' }));
    const toss = { prompt: 'Toss a coin' };

    const job = await asking([toss, toss], { failures: 1 });

    expect(job).toMatchObject({
      status: 'completed',
      attempt: 2,
      output: [{ text: 'heads' }, { text: 'tails' }],
    });
    expect(since(before)).toHaveLength(2);
  });

  test.each([
    [true, ['text/v1.0/word-count', 'text/v1.0/diff', 'staged/v1.0/sum']],
    [['text/*'], ['text/v1.0/word-count', 'text/v1.0/diff']],
    [['text/v1.0/diff', 'util/*'], ['text/v1.0/diff']],
    [['util/*'], []],
  ])("offers of the agent's tools those that match %j", async (tools, offered) => {
    const skills = ['text/v1.0/word-count', 'text/v1.0/diff', 'staged/v1.0/sum'];
    const { asking } = await newThinker(world.platform, { skills });
    const before = soFar();
    world.provider.script(answering('Fine.'));

    await asking([{ prompt: 'x', tools }]);

    const names = since(before)[0]?.tools.filter((name) => name.includes('__')) ?? [];
    expect(names.map((name) => name.replace(/^(.+)__(.+)__v1_0$/, '$1/v1.0/$2')).sort()).toEqual(
      [...offered].sort(),
    );
  });

  test('rejects with a code and retryable, which a skill can catch', async () => {
    const { asking } = await newThinker(world.platform);
    world.provider.script(inTurn({ fault: { status: 401 } }, { fault: { status: 400 } }));

    const job = await asking([
      { prompt: 'One', caught: true },
      { prompt: 'Two', caught: true },
    ]);

    expect(job).toMatchObject({
      status: 'completed',
      output: [
        { code: 'missing_credentials', retryable: false, message: expect.stringMatching(/401/) },
        { code: 'skill_execution_failed', retryable: false, message: expect.stringMatching(/400/) },
      ],
    });
  });
});
