import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callingTools, type Reply, type ScriptedRequest } from '../support/scripted-provider.ts';
import { acting, play } from '../support/staged.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

const turnsMax = 6;
let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers({ environment: { AGENT_TURNS_MAX: String(turnsMax) } });
});
afterAll(() => world.stop());

const wordCount = toolNamed('text/v1.0/word-count');
const played = toolNamed(play);

/** Whether a request forbids calls of tools. */
const isForbidden = ({ tool_choice, toolConfig }: ScriptedRequest['body']) =>
  [tool_choice, tool_choice?.type].includes('none') ||
  toolConfig?.functionCallingConfig.mode === 'NONE';

const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;

/** Has a model call tools once; its job, the steps of the tools, and what the model was told. */
async function calling(model: string, toolCalls: NonNullable<Reply['toolCalls']>) {
  const thinker = await newThinker(world.platform, { model, skills: ['text/*', 'staged/*'] });
  const before = soFar();
  world.provider.script(callingTools(toolCalls, 'I see.'));
  const job = await thinker.task('Do it');
  const steps = (await thinker.steps(job.job_id)).filter(({ kind }) => kind === 'tool');
  return { job, steps, told: since(before)[1]?.toolResults ?? [], thinker };
}

describe.each(['openai/test', 'anthropic/test'])('an error of a tool with %s', (model) => {
  test.each([
    ['an error', 'skill_execution_failed', { message: 'the well is dry' }],
    [
      'an error with a code',
      'upstream_unavailable',
      { message: 'down', code: 'upstream_unavailable' },
    ],
  ])('is reported to the model: %s', async (_, code, fail) => {
    const { job, steps, told } = await calling(model, [{ name: played, input: acting({ fail }) }]);

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'I see.' }, attempt: 1 });
    expect(told).toEqual([expect.stringContaining(fail.message)]);
    expect(steps).toMatchObject([
      { name: play, status: 'failed', error: { code, message: fail.message } },
    ]);
  });

  test('is reported to the model: a timeout', async () => {
    const { job, steps, told } = await calling(model, [
      { name: toolNamed('staged/v1.0/hasty'), input: {} },
    ]);

    expect(job).toMatchObject({ status: 'completed', attempt: 1 });
    expect(told).toEqual([expect.stringMatching(/100 ms/)]);
    expect(steps).toMatchObject([{ status: 'failed', error: { code: 'skill_timeout' } }]);
  });

  test('is reported to the model: an output that its schema refuses', async () => {
    const { told, steps } = await calling(model, [
      { name: toolNamed('staged/v1.0/strict'), input: { input: 'no integer' } },
    ]);

    expect(told).toEqual([expect.stringMatching(/integer/)]);
    expect(steps).toMatchObject([{ status: 'failed', error: { code: 'output_invalid' } }]);
  });

  test("is reported to the model: arguments that break the skill's schema, field by field", async () => {
    const { job, steps, told } = await calling(model, [
      { name: wordCount, input: {} },
      { name: wordCount, input: { text: 7 } },
      { name: toolNamed('staged/v1.0/sum'), input: { input: [1, 'two'] } },
    ]);

    expect(job).toMatchObject({ status: 'completed' });
    expect(told).toEqual([
      expect.stringMatching(/schema: text is required/),
      expect.stringMatching(/schema: text must be/),
      expect.stringMatching(/schema: .*1.* must be/),
    ]);
    for (const step of steps) {
      expect(step).toMatchObject({ status: 'failed', error: { code: 'invalid_input' } });
    }
  });

  test.each([
    ['cut off', '{"text": "one tw'],
    ['no JSON at all', 'text=one'],
    ['a list', '["one"]'],
    ['a text', '"one"'],
    ['null', 'null'],
    ['with a zero character', '{"text":"a\\u0000b"}'],
  ])('is reported to the model: arguments that are %s', async (_, input) => {
    const { job, steps, told } = await calling(model, [{ name: wordCount, input }]);

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'I see.' } });
    expect(told).toEqual([expect.stringMatching(/arguments/)]);
    expect(steps).toMatchObject([{ status: 'failed', error: { code: 'invalid_input' } }]);
  });

  test.each([
    ['in its arguments', '{"text": "one tw'],
    ['before its arguments', ''],
  ])('is reported to the model: a call that the limit of the answer cut %s', async (_, input) => {
    const thinker = await newThinker(world.platform, { model, skills: ['text/*'] });
    const before = soFar();
    world.provider.script(({ toolResults }) =>
      toolResults.length > 0
        ? { text: 'I see.' }
        : {
            toolCalls: [
              { name: wordCount, input: { text: 'one two' } },
              { name: 'recall', input },
            ],
            finish: 'length',
          },
    );

    const job = await thinker.task('Do it');

    expect(job).toMatchObject({ error: null, status: 'completed', output: { answer: 'I see.' } });
    expect(since(before)[1]?.toolResults).toEqual([
      expect.stringContaining('"words":2'),
      expect.stringMatching(/cut at 4096 tokens.*was not called.*shorter arguments/),
    ]);
  });

  test.each([
    ['1 MB', 1_000_000, 'x'],
    ['1 MB of characters of three bytes', 333_333, '語'],
    ['2 MB', 2_000_000, 'x'],
  ])('is reported to the model: arguments of %s', async (_, length, character) => {
    const text = character.repeat(length);
    const thinker = await newThinker(world.platform, { model, skills: ['text/*'] });
    const before = soFar();
    world.provider.script(({ toolResults }) =>
      toolResults.length > 0
        ? { text: 'I see.' }
        : { toolCalls: [{ name: wordCount, input: { text } }], piece: 50_000 },
    );

    const job = await thinker.task('Do it');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'I see.' } });
    expect(since(before)[1]?.toolResults).toEqual([expect.stringMatching(/too long/)]);
    // What it wrote is not shown to it again at full length.
    expect(JSON.stringify(since(before)[1]?.messages).length).toBeLessThan(20_000);
    const messages = await thinker.messages(job.conversation_id);
    for (const { content } of messages) expect(content.length).toBeLessThan(65_536);
  });

  test.each([
    ['a name that nothing has', 'no_such_tool'],
    ['a name that no provider takes', 'text/v1.0/word-count "é"'],
    ['a name of an object’s own', 'constructor'],
    ['a very long name', 'x'.repeat(5_000)],
  ])('is reported to the model: %s', async (_, name) => {
    const { job, steps, told } = await calling(model, [{ name, input: {} }]);

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'I see.' } });
    expect(told).toEqual([expect.stringMatching(/There is no tool .* There are: .*word-count/)]);
    expect(steps).toMatchObject([{ name: name.slice(0, 200), status: 'failed' }]);
  });

  test('may have no name at all', async () => {
    const { told, job } = await calling(model, [{ name: '', input: {} }]);

    expect(told).toEqual([expect.stringMatching(/There is no tool "_"|There is no tool ""/)]);
    expect(job.status).toBe('completed');
  });

  test('harms no tool that is called beside it', async () => {
    const { told } = await calling(model, [
      { name: played, input: acting({ fail: { message: 'broken' } }) },
      { name: 'no_such_tool', input: {} },
      { name: wordCount, input: { text: 'one two' } },
    ]);

    expect(told).toHaveLength(3);
    expect(JSON.parse(told[2] as string)).toMatchObject({ words: 2 });
  });
});

describe('a model that calls tools without end', () => {
  test('is stopped after AGENT_TURNS_MAX turns, and not run again', async () => {
    const { task, steps } = await newThinker(world.platform, { skills: ['text/*'] });
    const before = soFar();
    world.provider.script(() => ({ toolCalls: [{ name: wordCount, input: { text: 'x' } }] }));

    const job = await task('Never end');

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: {
        code: 'skill_execution_failed',
        message: expect.stringContaining(`within ${turnsMax} turns`),
      },
    });
    expect(since(before)).toHaveLength(turnsMax);
    const calls = (await steps(job.job_id)).filter(({ kind }) => kind === 'model');
    expect(calls.map(({ turn }) => turn)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test.each(['openai/test', 'anthropic/test'])(
    'has to answer in its last turn, without a tool: %s',
    async (model) => {
      const { task, steps } = await newThinker(world.platform, { model, skills: ['text/*'] });
      const before = soFar();
      world.provider.script(({ body }) =>
        isForbidden(body)
          ? { text: 'So far: x.' }
          : { toolCalls: [{ name: wordCount, input: { text: 'x' } }] },
      );

      const job = await task('Never end', { max_turns: 3 });

      expect(job).toMatchObject({
        status: 'completed',
        output: { answer: 'So far: x.' },
      });
      const asked = since(before);
      expect(asked.map(({ body }) => isForbidden(body))).toEqual([false, false, true]);
      // Providers refuse calls of tools that the request does not have.
      expect(asked[2]?.tools).toContain(wordCount);
      const said = (at: number) => JSON.stringify(asked[at]?.messages.at(-1));
      expect(said(2)).toContain('This is the last turn');
      expect(said(1)).not.toContain('This is the last turn');
      expect((await steps(job.job_id)).map(({ status }) => status)).toEqual(
        Array.from({ length: 5 }, () => 'completed'),
      );
    },
  );

  test('is told so in its first turn where that is the last one', async () => {
    const thinker = await newThinker(world.platform, { skills: ['text/*'] });
    const before = soFar();

    const job = await thinker.task('Say it', { max_turns: 1 });

    expect(job).toMatchObject({ status: 'completed' });
    const said = since(before)[0]?.messages.at(-1);
    expect(JSON.stringify(said)).toMatch(/Say it.*This is the last turn/);
    expect(JSON.stringify(await thinker.messages(job.conversation_id))).not.toContain('last turn');
  });

  test('that calls a tool in its last turn all the same has answered with its text', async () => {
    const { task, steps } = await newThinker(world.platform, { skills: ['text/*'] });
    const call = { name: wordCount, input: { text: 'x' } };
    world.provider.script(() => ({ text: 'So far: x.', toolCalls: [call] }));

    const job = await task('Never end', { max_turns: 2 });

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'So far: x.' } });
    const kinds = (await steps(job.job_id)).map(({ kind }) => kind);
    expect(kinds).toEqual(['model', 'tool', 'model']);
  });

  test('is stopped at the turns that its request allows, when these are fewer', async () => {
    const { task } = await newThinker(world.platform, { skills: ['text/*'] });
    const before = soFar();
    world.provider.script(() => ({ toolCalls: [{ name: wordCount, input: { text: 'x' } }] }));

    const job = await task('Never end', { max_turns: 2 });

    expect(job).toMatchObject({ status: 'failed', error: { code: 'skill_execution_failed' } });
    expect(since(before)).toHaveLength(2);
  });
});
