import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inTurn } from '../support/scripted-provider.ts';
import { asks, newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;

describe('a tool that thinks itself', () => {
  test('calls the model of the same agent, and its tokens count for the job', async () => {
    const { task, steps, tokens } = await newThinker(world.platform, { skills: ['text/*'] });
    const usage = { prompt: 10, completion: 1 };
    world.provider.script(({ tools, toolResults }) => {
      if (tools.length === 0) return { text: 'In short: no.', usage };
      return toolResults.length > 0
        ? { text: `It says ${toolResults[0]}`, usage }
        : {
            toolCalls: [{ name: toolNamed('text/v1.0/summarize'), input: { text: 'A long no.' } }],
            usage,
          };
    });

    const job = await task('Summarize');

    expect(job).toMatchObject({
      status: 'completed',
      output: { answer: expect.stringContaining('In short: no.') },
      token_stats: { prompt_tokens: 30, completion_tokens: 3, total_tokens: 33 },
    });
    expect(await tokens(job.conversation_id)).toMatchObject({ total_tokens: 33 });
    const recorded = await steps(job.job_id);
    expect(recorded).toMatchObject([
      { step: 1, parent_step_id: null, kind: 'model', turn: 1 },
      { step: 2, parent_step_id: 1, kind: 'tool', name: 'text/v1.0/summarize' },
      { step: 3, parent_step_id: 2, kind: 'model', turn: 1 },
      { step: 4, parent_step_id: null, kind: 'model', turn: 2 },
    ]);
    const [outer, tool, inner, last] = recorded.map(({ generation_id }) => generation_id);
    expect([tool, last]).toEqual([outer, outer]);
    expect(inner).not.toBe(outer);
  });

  test('and turns of concurrent requests differ in generation and parent', async () => {
    const { asking, steps } = await newThinker(world.platform, { skills: ['text/*'] });
    const call = { name: toolNamed('text/v1.0/word-count'), input: { text: 'one two' } };
    world.provider.script(({ toolResults }) =>
      toolResults.length > 0 ? { text: 'Two.' } : { toolCalls: [call] },
    );

    const job = await asking([
      [
        { prompt: 'First', tools: true },
        { prompt: 'Second', tools: true },
      ],
    ]);

    const recorded = await steps(job.job_id);
    const generations = new Set(recorded.map(({ generation_id }) => generation_id));
    expect(generations.size).toBe(2);
    for (const id of generations) {
      const [first, tool, last] = recorded.filter(({ generation_id }) => generation_id === id);
      expect(first).toMatchObject({ kind: 'model', turn: 1, parent_step_id: null });
      expect(tool).toMatchObject({ kind: 'tool', turn: 1, parent_step_id: first?.step });
      expect(last).toMatchObject({ kind: 'model', turn: 2, parent_step_id: null });
    }
  });

  test('is offered no tools below the third level, so that it comes to an end', async () => {
    const { asking, steps } = await newThinker(world.platform, { skills: ['thinking/*'] });
    const request = { prompt: 'Go deeper', tools: true, caught: true };
    world.provider.script(({ tools, toolResults }) => {
      const deeper = { name: toolNamed(asks), input: { requests: [request] } };
      return tools.includes(deeper.name) && toolResults.length === 0
        ? { toolCalls: [deeper] }
        : { text: 'Deep enough.' };
    });

    const job = await asking([request]);

    expect(job).toMatchObject({ status: 'completed', output: [{ text: 'Deep enough.' }] });
    const tools = (await steps(job.job_id)).filter(({ kind }) => kind === 'tool');
    expect(tools).toHaveLength(3);
  });

  test('is not taken for another that was called under the same id', async () => {
    const { asking } = await newThinker(world.platform, { skills: ['thinking/*'] });
    const request = { prompt: 'Give a number', schema: { type: 'integer' } };
    // Providers that count calls for each answer begin at the same id each time.
    const call = { name: toolNamed(asks), input: { requests: [request] }, id: 'call_0' };
    let given = 0;
    world.provider.script(({ tools, toolResults, messages }) => {
      if (tools.length > 0) {
        return toolResults.length > 0 ? { text: `${toolResults[0]}` } : { toolCalls: [call] };
      }
      // The first answer to each is none, so that it goes on from what is recorded.
      const isFirst = messages.length <= 2;
      if (!isFirst) given += 1;
      return { text: isFirst ? 'a number' : `${given}` };
    });

    const job = await asking([
      { prompt: 'First', tools: true },
      { prompt: 'Second', tools: true },
    ]);

    expect(job.status).toBe('completed');
    const numbers = job.output.map(({ text }: { text: string }) => JSON.parse(text)[0].output);
    expect(numbers).toEqual([1, 2]);
  });

  test('has its answers back when the job is run again', async () => {
    const { asking } = await newThinker(world.platform, { skills: ['thinking/*'] });
    const before = soFar();
    world.provider.script(
      inTurn(
        { toolCalls: [{ name: toolNamed(asks), input: { requests: [{ prompt: 'Deep' }] } }] },
        { text: 'deep answer' },
        { text: 'the end' },
      ),
    );

    const job = await asking([{ prompt: 'Shallow', tools: true }], { failures: 1 });

    expect(job).toMatchObject({ status: 'completed', attempt: 2, output: [{ text: 'the end' }] });
    expect(since(before)).toHaveLength(3);
  });

  test('may fail as a tool does, and the model gets the error', async () => {
    const { task } = await newThinker(world.platform, { skills: ['text/*'] });
    const before = soFar();
    world.provider.script(({ tools, toolResults }) => {
      if (tools.length === 0) return { fault: { status: 400 } };
      const call = { name: toolNamed('text/v1.0/summarize'), input: { text: 'A text.' } };
      return toolResults.length > 0 ? { text: 'It failed.' } : { toolCalls: [call] };
    });

    const job = await task('Summarize');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'It failed.' } });
    expect(since(before).at(-1)?.toolResults).toEqual([expect.stringMatching(/refuses/)]);
  });
});
