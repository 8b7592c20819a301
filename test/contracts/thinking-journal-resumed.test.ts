import { describe, expect, test } from 'vitest';
import { insertJobEvents } from '../../src/core/jobs/job-events.store.ts';
import type { PlannedTool } from '../../src/core/thinking/recorded-generation.ts';
import { engines } from '../support/databases.ts';
import {
  asked,
  begun,
  expectLedger,
  gave,
  said,
  saying,
  stepsOf,
  thinkingWorld,
} from '../support/thinking-journal.ts';
import type { Journal } from '../support/whole-journal.ts';

describe.each(await engines())('on $name', (engine) => {
  test('a request that has failed is on record also if its run writes no more before it is unloaded', async () => {
    const world = await thinkingWorld(engine);
    const job = await world.claimed();
    const journal = world.journalOf(job);
    const failure = { code: 'budget_exceeded', message: 'no', retryable: false };
    await journal.failGeneration(asked('g'), failure);
    expect(await stepsOf(world)).toEqual([]);

    await journal.steps.writeRest();
    await journal.steps.writeRest();

    expect(await stepsOf(world)).toMatchObject([{ kind: 'generate', status: 'failed' }]);
    const again = world.journalOf({ ...job, epoch: 2 });
    expect(await again.recorded(asked('g'))).toMatchObject({ failure });
  });

  test('a claim that lost its job leaves what it has not written', async () => {
    const world = await thinkingWorld(engine);
    const job = await world.claimed();
    const late = world.journalOf(job);
    await late.failGeneration(asked('g'), { code: 'c', message: 'no' });
    await world.lose(job);

    await late.steps.writeRest();

    expect(await stepsOf(world)).toEqual([]);
  });

  describe('a run that broke off', () => {
    const actions = [
      'begin turn 1',
      'end turn 1',
      'end tool b',
      'end tool a',
      'begin turn 2',
      'end turn 2',
    ] as const;

    /** Does what is not on record yet, as the loop does; at most so many things. */
    async function goOn(journal: Journal, most = Number.POSITIVE_INFINITY): Promise<string[]> {
      const { messages, open, turns } = await journal.recorded(asked('g'));
      const done: string[] = [];
      const isLeft = () => done.length < most;
      let turn = turns;
      const answered = new Set(messages.flatMap((one) => (one.role === 'tool' ? one.callId : [])));
      let tools = [...open.values()];
      const restarted = new Set(tools);
      while (turn < 2 || tools.length > 0) {
        if (turn === 0 || (tools.length === 0 && answered.size === 2)) {
          if (!isLeft()) return done;
          turn += 1;
          done.push(`begin turn ${turn}`);
          const call = await begun(journal, { turn });
          if (!isLeft()) return done;
          done.push(`end turn ${turn}`);
          const message = turn === 1 ? saying('first', 'a', 'b') : saying('last');
          tools = await journal.endCall(call, said(message));
        }
        for (const tool of tools.toReversed()) {
          if (!isLeft()) return done;
          if (restarted.has(tool)) await journal.restartTool(tool);
          done.push(`end tool ${tool.call.id}`);
          await journal.endTool(tool, gave(tool.call.id));
          answered.add(tool.call.id);
        }
        tools = [];
      }
      return done;
    }

    test.each(actions.map((_, i) => i).concat(actions.length))(
      'after %i steps resumes: finished steps are not repeated',
      async (most) => {
        const world = await thinkingWorld(engine);
        const job = await world.claimed();
        const before = await goOn(world.journalOf(job), most);
        expect(before).toEqual(actions.slice(0, most));

        const again = await world.lose(job);
        const after = await goOn(world.journalOf(again));

        // A call that was under way is made again, because its result is unknown.
        const isOpen = before.at(-1)?.startsWith('begin') === true;
        expect(after).toEqual(actions.slice(isOpen ? most - 1 : most));
        const { messages, turns, open, costs } = await world.journalOf(again).recorded(asked('g'));
        expect(messages).toEqual([
          saying('first', 'a', 'b'),
          gave('a').message,
          gave('b').message,
          saying('last'),
        ]);
        expect([turns, open.size]).toEqual([2, 0]);
        expect(costs).toHaveLength(isOpen ? 3 : 2);
        const steps = await stepsOf(world);
        expect(steps.map(({ n }) => n)).toEqual(steps.map((_, i) => i + 1));
        expect(steps.filter(({ status }) => status !== 'completed')).toMatchObject(
          isOpen ? [{ kind: 'model', status: 'interrupted', estimated: 60 }] : [],
        );
        await expectLedger(world);
      },
    );

    test('leaves calls under way as unknown, charged with their prompt and what they had streamed', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      await journal.endCall(await begun(journal), said(saying('', 'a')));
      const lost = await begun(journal, { generation: 'other' });
      const token = (n: number, step: number, text: string) => ({
        ...{ job_id: job.id, epoch: job.epoch, n, type: 'token', created_at: 0 },
        data: JSON.stringify({ step, text }),
      });
      await world.database.write((tx) =>
        insertJobEvents(tx, [
          token(1, 1, 'of another'),
          token(2, lost.n, 'so f'),
          token(3, lost.n, 'är: 漢'),
        ]),
      );

      await world.lose(job);

      const error = JSON.stringify({
        code: 'worker_lost',
        message: 'The run ended while this was under way',
      });
      const [first, tool, call] = await stepsOf(world);
      expect(first).toMatchObject({ status: 'completed', error: null });
      expect(tool).toMatchObject({ kind: 'tool', status: 'interrupted', error, message_id: null });
      expect(call).toMatchObject({
        status: 'interrupted',
        error,
        prompt_tokens: null,
        completion_tokens: null,
        reserved: 0,
        // The prompt as it was expected, and a token for three bytes of what was streamed.
        estimated: 60 + 4,
      });
      const messages = await world.messages(job);
      expect(messages.at(-1)).toMatchObject({
        id: call?.message_id,
        role: 'assistant',
        content: '',
        unreported: 3,
        dialogue: 4,
        data: null,
      });
      await expectLedger(world);
    });

    test('is separate from other dialogues of the run', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      for (const generation of ['one', 'two']) {
        const call = await begun(journal, { generation });
        await journal.endCall(call, said(saying(generation, 'a')));
      }

      const again = world.journalOf(await world.lose(job));

      for (const generation of ['one', 'two']) {
        const recorded = await again.recorded(asked(generation));
        expect(recorded.messages).toEqual([saying(generation, 'a')]);
        expect([...recorded.open.keys()]).toEqual(['a']);
      }
      expect((await again.recorded(asked('three'))).messages).toEqual([]);
    });

    test('has the opaque parts of its turns, of which each protocol sends those of its model', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const opaque = { ...saying('x', 'a'), opaque: { signature: 's' } };
      await journal.endCall(await begun(journal), said(opaque));

      const again = world.journalOf(await world.lose(job));

      expect((await again.recorded(asked('g'))).messages).toEqual([opaque]);
    });

    test('has the steps of its own claim only on request', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      await journal.endCall(await begun(journal), said(saying('wrong')));

      expect((await journal.recorded(asked('g'))).messages).toEqual([]);
      expect((await journal.recorded(asked('g'))).messages).toEqual([saying('wrong')]);
    });

    test('has its tools’ changes of the memory, in the order of its calls', async () => {
      const world = await thinkingWorld(engine);
      const job = await world.claimed();
      const journal = world.journalOf(job);
      const [a, b] = await journal.endCall(await begun(journal), said(saying('', 'a', 'b')));
      await journal.endTool(b as PlannedTool, gave('b', { memory: [{ forgotten: '2' }] }));
      await journal.endTool(a as PlannedTool, gave('a', { memory: [{ forgotten: '1' }] }));

      const again = world.journalOf(await world.lose(job));

      const { memory } = await again.recorded(asked('g'));
      expect(memory).toEqual([{ forgotten: '1' }, { forgotten: '2' }]);
    });
  });
});
