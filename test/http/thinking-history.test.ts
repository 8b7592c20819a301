import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answering, callingTools, inTurn, type Script } from '../support/scripted-provider.ts';
import { acting, gate, play } from '../support/staged.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

let world: Thinkers;
/** With a model that can read and write little. */
let small: Thinkers;
const contextTokens = 2_700;
beforeAll(async () => {
  world = await startThinkers();
  small = await startThinkers({
    environment: { MODEL_CONTEXT_TOKENS: String(contextTokens), MODEL_OUTPUT_TOKENS: '400' },
  });
});
afterAll(async () => {
  await small.stop();
  await world.stop();
});

const wordCount = toolNamed('text/v1.0/word-count');
const since = (before: number) => world.provider.requests.slice(before);
const soFar = () => world.provider.requests.length;
const goingOn = (id: string) => ({ 'x-conversation-id': id });

/** Who says what to the model, without the system prompt. */
const dialogueOf = (request: { messages: readonly { role: string; content: unknown }[] }) =>
  request.messages.filter(({ role }) => role !== 'system' && role !== 'developer');

describe.each(['openai/test', 'anthropic/test'])('a continued conversation with %s', (model) => {
  test('shows the model the earlier messages, calls and results', async () => {
    const { task, messages } = await newThinker(world.platform, { model, skills: ['text/*'] });
    world.provider.script(
      callingTools([{ name: wordCount, input: { text: 'one two' } }], 'Two words.'),
    );
    const first = await task('Count one two');
    world.provider.script(answering('You are welcome.'));
    const before = soFar();

    const second = await task('Thank you', {}, goingOn(first.conversation_id));

    expect(second).toMatchObject({
      status: 'completed',
      output: { answer: 'You are welcome.' },
      conversation_id: first.conversation_id,
    });
    const [request] = since(before);
    const said = dialogueOf(request as never).map(({ role, content }) => [
      role,
      JSON.stringify(content),
    ]);
    const tool = model.startsWith('openai') ? 'tool' : 'user';
    expect(said.map(([role]) => role)).toEqual(['user', 'assistant', tool, 'assistant', 'user']);
    const text = JSON.stringify(dialogueOf(request as never));
    expect(text).toContain('Count one two');
    expect(text).toContain('Two words.');
    expect(text).toContain(wordCount);
    expect(text).toContain('words');
    expect(said.at(-1)?.[1]).toContain('Thank you');
    const all = await messages(first.conversation_id);
    expect(all.map(({ role }: { role: string }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant', 'user', 'assistant'],
    ]);
  });

  test('may be one in which runs failed, were cancelled or broke off in a tool', async () => {
    const thinker = await newThinker(world.platform, { model, skills: ['text/*', 'staged/*'] });
    const { task, begin, post, jobIn, steps } = thinker;
    world.provider.script(() => ({ fault: { status: 400 } }));
    const failed = await task('First');
    const headers = goingOn(failed.conversation_id);
    const held = gate();
    // An id that the next answers use again.
    const call = { name: toolNamed(play), input: acting({ until: held.path }), id: 'call_0' };
    world.provider.script(() => ({ text: 'Well,', toolCalls: [call] }));
    const jobId = await begin('Second', headers);
    await expect.poll(async () => (await steps(jobId))[1]?.status).toBe('active');
    await post(`/api/jobs/${jobId}/cancel`);
    await jobIn(jobId, 'cancelled');
    const again = { name: wordCount, input: { text: 'one' }, id: 'call_0' };
    const before = soFar();
    world.provider.script(callingTools([again], 'Better.'));

    const third = await task('Third', {}, headers);
    const fourth = await task('Fourth', {}, headers);

    expect(third).toMatchObject({ status: 'completed', output: { answer: 'Better.' } });
    expect(fourth).toMatchObject({ status: 'completed', output: { answer: 'Better.' } });
    const text = JSON.stringify(since(before)[0]?.messages);
    for (const task of ['First', 'Second', 'Well,', 'Third']) expect(text).toContain(task);
    expect(text).not.toContain(held.path);
  });
});

test('an agent that changes its provider continues with the messages of the other', async () => {
  const { task, put } = await newThinker(world.platform, {
    model: 'openai/test',
    skills: ['text/*'],
  });
  const call = { name: wordCount, input: { text: 'one two' }, id: 'call: 1/é' };
  world.provider.script(callingTools([call, { name: 'no such tool', input: '{"cut' }], 'Two.'));
  const first = await task('Count');
  await put('/api/agents/thinker', { model: 'anthropic/test' });
  world.provider.script(callingTools([{ name: wordCount, input: { text: 'x' } }], 'One.'));
  const second = await task('Again', {}, goingOn(first.conversation_id));
  await put('/api/agents/thinker', { model: 'openai/test' });
  const third = await task('And again', {}, goingOn(first.conversation_id));

  expect([first.status, second.status, third.status]).toEqual([
    ...['completed', 'completed', 'completed'],
  ]);
});

/** The script of a model that makes no summary: `thinking-compaction` has those. */
const unsummarized =
  (script: Script): Script =>
  (request) =>
    request.system.startsWith('You summarize') ? { fault: { status: 400 } } : script(request);
const isAsked = ({ system }: { system: string }) => !system.startsWith('You summarize');
const isOfWindow = ({ event, data }: { event: string; data: { message: string } }) =>
  event === 'log' && data.message.endsWith("to fit the model's window");

describe("what is longer than the model's window", () => {
  const filler = 'all work and no play '.repeat(45);

  test('leaves out whole exchanges, the oldest first, and reports it in the stream', async () => {
    const { task, follow } = await newThinker(small.platform, { memory: 'read_write' });
    small.provider.script(
      unsummarized(({ messages }) => ({
        text: `answer ${/number (\d+)/.exec(JSON.stringify(messages.at(-1)))?.[1]}`,
      })),
    );
    const jobs = [await task(`number 0 ${filler}`)];
    const headers = goingOn(jobs[0].conversation_id);
    for (let n = 1; n < 6; n += 1) jobs.push(await task(`number ${n} ${filler}`, {}, headers));

    for (const job of jobs) expect(job.status).toBe('completed');
    for (const [n, request] of small.provider.requests.filter(isAsked).slice(-6).entries()) {
      const said = dialogueOf(request as never);
      const text = JSON.stringify(said);
      const shown = jobs.map((_, i) => i).filter((i) => text.includes(`number ${i} `));
      // The newest without a gap, and each with its answer.
      expect(shown).toEqual(jobs.map((_, i) => i).slice(n + 1 - shown.length, n + 1));
      expect(said.map(({ role }) => role)).toEqual(
        [...Array(shown.length - 1).fill(['user', 'assistant']), 'user'].flat(),
      );
      expect(Buffer.byteLength(text) / 4).toBeLessThan(contextTokens);
    }
    const last = JSON.stringify(small.provider.requests.at(-1)?.messages);
    expect(last).not.toContain('number 0 ');
    expect(last).toContain('number 4 ');
    const events = await (await follow(jobs[5].job_id)).ended;
    expect(events.filter(isOfWindow).map(({ data }) => data.message)).toEqual([
      expect.stringMatching(/older messages were left out/),
    ]);
  });

  test('cuts results of tools, the oldest first, where one exchange alone is too long', async () => {
    const { task, post, follow } = await newThinker(small.platform);
    await post('/api/agents/thinker/memories', { content: 'x'.repeat(1_300) });
    const recall = { toolCalls: [{ name: 'recall', input: {} }] };
    small.provider.script(
      unsummarized(inTurn(recall, recall, recall, recall, recall, { text: 'Done.' })),
    );

    const job = await task('Read it all');

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Done.' } });
    const last = dialogueOf(small.provider.requests.at(-1) as never);
    const results = last.filter(({ role }) => role === 'tool').map(({ content }) => `${content}`);
    const areCut = results.map((text) => /characters were left out/.test(text));
    expect(areCut).toHaveLength(5);
    expect(areCut[0]).toBe(true);
    expect(areCut[4]).toBe(false);
    expect(areCut.lastIndexOf(true)).toBeLessThan(areCut.indexOf(false));
    expect(JSON.stringify(last[0])).toContain('Read it all');
    const events = await (await follow(job.job_id)).ended;
    const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
    expect(logs.at(-1)).toMatch(/^[1-4] results of tools were cut, to fit the model's window$/);
  });

  test('fails the job with a message when the task alone is too long, without a call', async () => {
    const { task } = await newThinker(small.platform);
    const before = small.provider.requests.length;

    const job = await task('long '.repeat(2_000));

    expect(job).toMatchObject({
      status: 'failed',
      attempt: 1,
      error: {
        code: 'skill_execution_failed',
        message: expect.stringContaining(`${contextTokens} tokens`),
      },
      token_stats: { total_tokens: 0 },
    });
    expect(small.provider.requests.length).toBe(before);
  });

  test('is not read beyond 4 MiB of earlier messages, and the stream reports it', async () => {
    const { task, follow, get } = await newThinker(small.platform);
    // Four bytes each.
    const long = '\u{1F600}'.repeat(65_000);
    const first = await task(long);
    const headers = goingOn(first.conversation_id);
    for (let n = 1; n < 18; n += 1) await task(long, {}, headers);
    small.provider.script(unsummarized(answering('Short.')));

    const job = await task('Be short', {}, headers);

    expect(job).toMatchObject({ status: 'completed', output: { answer: 'Short.' } });
    const events = await (await follow(job.job_id)).ended;
    expect(events.filter(({ event }) => event === 'log').map(({ data }) => data.message)).toContain(
      'Earlier messages of the conversation were left out: only the newest 16 are read',
    );
    const messages = await get(`/api/conversations/${first.conversation_id}/messages?limit=500`);
    expect(messages.body).toHaveLength(16);
    expect(messages.headers.get('x-next-offset')).toBe('16');
    expect(messages.headers.get('x-total-count')).toBe('20');
  });
});
