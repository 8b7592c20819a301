import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReceivedEvent } from '../support/event-stream.ts';
import { answering, inTurn } from '../support/scripted-provider.ts';
import { acting, gate, play } from '../support/staged.ts';
import { newThinker, startThinkers, type Thinkers, toolNamed } from '../support/thinkers.ts';

let world: Thinkers;
beforeAll(async () => {
  world = await startThinkers();
});
afterAll(() => world.stop());

const played = toolNamed(play);

/** What the model says in a step, put together from its pieces. */
const textOf = (events: readonly ReceivedEvent[], step: number) =>
  events
    .filter(({ event, data }) => event === 'token' && data.step === step)
    .map(({ data }) => data.text)
    .join('');

/** The types in order, pieces that follow each other as one. */
const typesOf = (events: readonly ReceivedEvent[]) =>
  events
    .map(({ event }) => event)
    .filter((type, i, all) => type !== 'token' || all[i - 1] !== type);

const whole = [
  ...['status', 'status', 'token', 'message', 'tool_call', 'tool_result'],
  ...['token', 'message', 'status'],
];

describe.each(['openai/test', 'anthropic/test'])(
  'the stream of a job that thinks with %s',
  (model) => {
    const thinker = () => newThinker(world.platform, { model, skills: ['staged/*'] });

    test('has the text, calls and results of the model as they happen', async () => {
      const { begin, follow } = await thinker();
      const speaking = Promise.withResolvers<void>();
      const playing = gate();
      const ending = Promise.withResolvers<void>();
      const call = {
        name: played,
        input: { ...acting({ until: playing.path }), output: 'played' },
      };
      world.provider.script(
        inTurn(
          // Text comes before the call, so what is held back begins within the text.
          {
            text: 'Let me play something.',
            hold: { after: 2, until: speaking.promise },
            toolCalls: [call],
          },
          { text: 'That was nice to hear.', hold: { after: 2, until: ending.promise } },
        ),
      );
      const jobId = await begin('Play');
      const stream = await follow(jobId);
      const seen = (type: string, step: number) =>
        stream.event(
          ({ event, data }) => event === type && data.step === step,
          `${type} of ${step}`,
        );

      // Each is awaited while what comes after it is held back.
      await seen('token', 1);
      speaking.resolve();
      const called = await seen('tool_call', 2);
      playing.open();
      const given = await seen('tool_result', 2);
      await seen('token', 3);
      ending.resolve();
      const events = await stream.ended;

      expect(typesOf(events)).toEqual(whole);
      expect(textOf(events, 1)).toBe('Let me play something.');
      expect(textOf(events, 3)).toBe('That was nice to hear.');
      expect(called.data).toMatchObject({ tool: play, input: call.input });
      expect(given.data).toMatchObject({
        tool: play,
        output: 'played',
        call_id: called.data.call_id,
      });
      const messages = events.filter(({ event }) => event === 'message');
      expect(messages.map(({ data }) => [data.role, data.content])).toEqual([
        ['assistant', 'Let me play something.'],
        ['assistant', 'That was nice to hear.'],
      ]);
    });

    test('resumes after any of its events without loss or repetition', async () => {
      const { begin, follow, jobIn } = await thinker();
      world.provider.script(
        inTurn(
          { text: 'One, two.', toolCalls: [{ name: played, input: acting({ log: 'hm' }) }] },
          { text: 'It is done, at last.', everyMs: 60, piece: 4 },
        ),
      );
      const jobId = await begin('Play');
      const live = await follow(jobId);
      const events = await live.ended;
      await jobIn(jobId, 'completed');

      expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
      expect(events.filter(({ event }) => event === 'token').length).toBeGreaterThan(2);
      const again = await (await follow(jobId)).ended;
      expect(again).toEqual(events);
      for (const [i, { id }] of events.entries()) {
        expect(await (await follow(jobId, id)).ended).toEqual(events.slice(i + 1));
      }
    });

    test('is resumed while it runs, wherever it was left', async () => {
      const { begin, follow } = await thinker();
      const text = 'A rather long answer that comes in many small pieces.';
      world.provider.script(answering(text, { piece: 3, everyMs: 25 }));
      const jobId = await begin('Speak');
      const events: ReceivedEvent[] = [];
      for (let isOver = false; !isOver; ) {
        const last = events.at(-1)?.id;
        const stream = await follow(jobId, last);
        await stream.event(() => true, 'the next event');
        stream.leave();
        events.push(...stream.events);
        isOver = events.at(-1)?.data.status === 'completed';
      }

      expect(textOf(events, 1)).toBe(text);
      expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
      expect(await (await follow(jobId)).ended).toEqual(events);
    });

    test('never ends a piece inside a character', async () => {
      const { begin, follow, messages, jobIn } = await thinker();
      const text = '🦊🐻‍❄️ héé 👩‍👩‍👧‍👦𝒳'.repeat(6);
      world.provider.script(answering(text, { piece: 1, everyMs: 3 }));
      const jobId = await begin('Draw');
      const events = await (await follow(jobId)).ended;

      const pieces = events.filter(({ event }) => event === 'token').map(({ data }) => data.text);
      expect(pieces.length).toBeGreaterThan(1);
      for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
      expect(pieces.join('')).toBe(text);
      const { body: job } = await jobIn(jobId, 'completed');
      expect((await messages(job.conversation_id)).at(-1).content).toBe(text);
    });

    test('separates the tokens of a broken call from those of its repetition', async () => {
      const { begin, follow, jobIn, messages } = await thinker();
      world.provider.script(
        inTurn({ text: 'Once upon a time', fault: 'cut', faultAfter: 3 }, { text: 'Whole.' }),
      );
      const jobId = await begin('Tell');
      const events = await (await follow(jobId)).ended;

      expect(textOf(events, 1)).toMatch(/^Once/);
      expect(textOf(events, 2)).toBe('Whole.');
      const logs = events.filter(({ event }) => event === 'log').map(({ data }) => data.message);
      expect(logs).toEqual([expect.stringMatching(/asking again/)]);
      const { body: job } = await jobIn(jobId, 'completed');
      const said = (await messages(job.conversation_id)).map(({ role, kind, content }) => ({
        role,
        kind,
        content,
      }));
      expect(said.slice(1)).toEqual([
        { role: 'assistant', kind: 'unfinished', content: textOf(events, 1) },
        { role: 'assistant', kind: 'message', content: 'Whole.' },
      ]);
    });

    test('has the error of a tool', async () => {
      const { begin, follow } = await thinker();
      const fail = { message: 'the well is dry' };
      world.provider.script(
        inTurn({ toolCalls: [{ name: played, input: acting({ fail }) }] }, { text: 'A pity.' }),
      );
      const events = await (await follow(await begin('Play'))).ended;

      const result = events.find(({ event }) => event === 'tool_result');
      expect(result?.data).toMatchObject({
        tool: play,
        error: { code: 'skill_execution_failed', message: 'the well is dry' },
      });
      expect(result?.data).not.toHaveProperty('output');
    });
  },
);

test('a long answer comes in pieces worth an event each, and whole in the end', async () => {
  const { begin, follow, jobIn, messages } = await newThinker(world.platform);
  const text = 'word '.repeat(20_000);
  world.provider.script(answering(text, { piece: 10 }));
  const jobId = await begin('Go on and on');
  const events = await (await follow(jobId)).ended;

  expect(textOf(events, 1)).toBe(text);
  expect(events.length).toBeLessThan(500);
  const { body: job } = await jobIn(jobId, 'completed');
  expect(job.output.answer).toBe(text);
  const said = (await messages(job.conversation_id)).at(-1).content;
  expect(Buffer.byteLength(said)).toBeLessThanOrEqual(65_536);
});
