import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { newThinker, startThinkers, sumOf, type Thinkers, toolNamed } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const wordCount = toolNamed('text/v1.0/word-count');
const counting = { name: wordCount, input: { text: 'one two' } };

/** The parts of the breakdown, in order. */
// biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes
const partsOf = (tokens: any) =>
  tokens.breakdown.map((part: { prompt_tokens: number; completion_tokens: number }) => [
    part.prompt_tokens,
    part.completion_tokens,
  ]);

const stats = (prompt: number | null, completion: number | null, total: number | null) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: total,
});

describe.each(['openai/test', 'anthropic/test'])('tokens of %s', (model) => {
  const thinker = () => newThinker(world.platform, { model, skills: ['text/*'] });

  test('are counted for each message, and their sums are those of conversation and job', async () => {
    const { task, tokens, get } = await thinker();
    world.provider.script(
      inTurn(
        { toolCalls: [counting], usage: { prompt: 20, completion: 5 } },
        { text: 'Two.', usage: { prompt: 31, completion: 2 } },
      ),
    );

    const job = await task('Count');

    const sums = stats(51, 7, 58);
    expect(job).toMatchObject({ status: 'completed', token_stats: sums });
    const used = await tokens(job.conversation_id);
    expect(used).toMatchObject(sums);
    expect(used.breakdown.map((part: { role: string }) => part.role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant'],
    ]);
    expect(partsOf(used)).toEqual([
      [0, 0],
      [20, 5],
      [0, 0],
      [31, 2],
    ]);
    const { body } = await get(`/api/conversations/${job.conversation_id}`);
    expect(body.token_stats).toMatchObject(sums);
  });

  test('that are not reported are null, never 0', async () => {
    const { task, tokens, steps, get } = await thinker();
    world.provider.script(answering('Who knows.', { usage: null }));

    const job = await task('Say something');

    const unknown = stats(null, null, null);
    expect(job).toMatchObject({ status: 'completed', token_stats: unknown });
    const used = await tokens(job.conversation_id);
    expect(used).toMatchObject(unknown);
    expect(partsOf(used)).toEqual([
      [0, 0],
      [null, null],
    ]);
    const { body } = await get(`/api/conversations/${job.conversation_id}`);
    expect(body.token_stats).toMatchObject(unknown);
    expect(await steps(job.job_id)).toMatchObject([
      { prompt_tokens: null, completion_tokens: null },
    ]);
  });

  test('that are reported of some messages alone are summed, and the others are null', async () => {
    const { task, tokens } = await thinker();
    world.provider.script(
      inTurn(
        { toolCalls: [counting], usage: null },
        { text: 'Two.', usage: { prompt: 31, completion: 2 } },
      ),
    );

    const job = await task('Count');

    expect(job.token_stats).toMatchObject(stats(31, 2, 33));
    const used = await tokens(job.conversation_id);
    expect(used).toMatchObject(stats(31, 2, 33));
    expect(partsOf(used)).toEqual([
      [0, 0],
      [null, null],
      [0, 0],
      [31, 2],
    ]);
  });

  test('of an answer that breaks off are those reported by then, in addition to those of the next call', async () => {
    const { task, tokens, steps } = await thinker();
    world.provider.script(
      inTurn(
        { text: 'Once upon a time', fault: 'cut', usage: { prompt: 40, completion: 9 } },
        { text: 'Whole.', usage: { prompt: 40, completion: 2 } },
      ),
    );

    const job = await task('Tell');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Whole.' } });
    // Messages tell of the prompt when they begin, chats tell nothing before the end.
    const known = model.startsWith('anthropic') ? 40 : null;
    const used = await tokens(job.conversation_id);
    expect(partsOf(used)).toEqual([
      [0, 0],
      [known, null],
      [40, 2],
    ]);
    const prompt = sumOf([known, 40]) as number;
    expect(used).toMatchObject(stats(prompt, 2, prompt + 2));
    expect(job.token_stats).toMatchObject(stats(prompt, 2, prompt + 2));
    expect(await steps(job.job_id)).toMatchObject([
      { turn: 1, status: 'failed', prompt_tokens: known, completion_tokens: null },
      { turn: 1, status: 'completed', prompt_tokens: 40, completion_tokens: 2 },
    ]);
  });

  test('of a run that is cancelled in the middle are recorded', async () => {
    const { begin, follow, jobIn, post, tokens } = await thinker();
    const until = Promise.withResolvers<void>();
    world.provider.script(
      answering('a long story', {
        usage: { prompt: 40, completion: 9 },
        hold: { after: 3, until: until.promise },
      }),
    );
    const jobId = await begin('Tell');
    await (await follow(jobId)).event(({ event }) => event === 'token', 'it has begun to answer');
    await post(`/api/jobs/${jobId}/cancel`);
    const { body: job } = await jobIn(jobId, 'cancelled');
    until.resolve();

    const known = model.startsWith('anthropic') ? 40 : null;
    expect(job.token_stats).toMatchObject(stats(known, null, known));
    const used = await tokens(job.conversation_id);
    expect(used).toMatchObject(stats(known, null, known));
    expect(partsOf(used).at(-1)).toEqual([known, null]);
  });

  test('of a refused request are not counted', async () => {
    const { task, tokens } = await thinker();
    world.provider.script(() => ({ fault: { status: 400 } }));

    const job = await task('Say something');

    expect(job).toMatchObject({ status: 'failed', token_stats: stats(0, 0, 0) });
    expect(partsOf(await tokens(job.conversation_id))).toEqual([[0, 0]]);
  });
});

describe('tokens of a conversation', () => {
  test('are those of all its jobs, and each job has its own', async () => {
    const { task, tokens } = await newThinker(world.platform);
    world.provider.script(
      inTurn(
        { text: 'One.', usage: { prompt: 10, completion: 1 } },
        { text: 'Two.', usage: null },
        { text: 'Three.', usage: { prompt: 30, completion: 3 } },
      ),
    );
    const first = await task('First');
    const goesOn = { 'x-conversation-id': first.conversation_id };
    const second = await task('Second', {}, goesOn);
    const third = await task('Third', {}, goesOn);

    expect(first.token_stats).toMatchObject(stats(10, 1, 11));
    expect(second.token_stats).toMatchObject(stats(null, null, null));
    expect(third.token_stats).toMatchObject(stats(30, 3, 33));
    expect(await tokens(first.conversation_id)).toMatchObject(stats(40, 4, 44));
  });

  test('are counted once in a repeated attempt, which does not repeat finished turns', async () => {
    const { asking, tokens, steps } = await newThinker(world.platform);
    world.provider.script(answering('Yes.', { usage: { prompt: 10, completion: 1 } }));
    const before = world.provider.requests.length;

    const job = await asking([{ prompt: 'One?' }, { prompt: 'Two?' }], { failures: 2 });

    expect(job).toMatchObject({ status: 'completed', attempt: 3, token_stats: stats(20, 2, 22) });
    expect(world.provider.requests.length - before).toBe(2);
    expect(await tokens(job.conversation_id)).toMatchObject(stats(20, 2, 22));
    expect(await steps(job.job_id)).toHaveLength(2);
  });
});
