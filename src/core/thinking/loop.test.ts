import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DialogueMessage, ToolCall } from '../../adapters/models/model.ts';
import { LoopError, type LoopState, runLoop } from './loop.ts';

const turnsMax = 50;

const call = (id: string): ToolCall => ({ id, name: 'tool', input: '{}' });
const calling = (...ids: string[]): DialogueMessage => ({
  role: 'assistant',
  text: '',
  toolCalls: ids.map(call),
});
const saying = (text: string): DialogueMessage => ({ role: 'assistant', text, toolCalls: [] });
const user = (text: string): DialogueMessage => ({ role: 'user', text });
const toolAnswer = (callId: string): DialogueMessage => ({
  role: 'tool',
  callId,
  name: 'tool',
  text: `of ${callId}`,
  isError: false,
});

const beginning = (more: Partial<LoopState> = {}): LoopState => ({
  messages: [user('task')],
  task: 0,
  turns: 0,
  corrections: [],
  ...more,
});

interface Parts {
  readonly ask: Parameters<typeof runLoop>[2];
  readonly runTool: Parameters<typeof runLoop>[3];
}
const run = ({ ask, runTool }: Parts, state: LoopState, turns: number) =>
  runLoop(state, turns, ask, runTool);

/** A model with scripted answers, and tools that answer. */
function scripted(answers: readonly DialogueMessage[], parts: Partial<Parts> = {}) {
  const asked: DialogueMessage[][] = [];
  const called: string[] = [];
  const all: Parts = {
    async ask(messages, turn) {
      asked.push([...messages]);
      const message = answers[turn - 1];
      if (message?.role !== 'assistant') throw new Error(`nothing is scripted for turn ${turn}`);
      return { message };
    },
    async runTool({ id }) {
      called.push(id);
      return toolAnswer(id) as Awaited<ReturnType<Parts['runTool']>>;
    },
    ...parts,
  };
  return { parts: all, asked, called };
}

describe('the loop', () => {
  test('ends with the first answer that calls no tool', async () => {
    const { parts, asked } = scripted([saying('done')]);

    expect(await run(parts, beginning(), turnsMax)).toEqual({
      text: 'done',
      isCut: false,
      turns: 1,
    });
    expect(asked).toEqual([[user('task')]]);
  });

  test('reports that the answer was cut, also when it is on record', async () => {
    const cut = { ...saying('half of'), isCut: true } as DialogueMessage;
    const { parts } = scripted([cut]);
    const messages = [user('task'), cut];

    const result = { text: 'half of', isCut: true, turns: 1 };
    expect(await run(parts, beginning(), turnsMax)).toEqual(result);
    expect(await run(parts, beginning({ messages, turns: 1 }), turnsMax)).toEqual(result);
  });

  test('sends the model the messages before the task', async () => {
    const { parts, asked } = scripted([saying('done')]);
    const messages = [user('earlier'), saying('answered'), user('task')];

    await run(parts, beginning({ messages, task: 2 }), turnsMax);

    expect(asked).toEqual([messages]);
  });

  test('an answer of an earlier exchange is not a result', async () => {
    const { parts } = scripted([saying('new')]);
    const messages = [user('earlier'), saying('old'), user('task')];

    const result = await run(parts, beginning({ messages, task: 2 }), turnsMax);

    expect(result.text).toBe('new');
  });

  test('a call of an earlier exchange that was never answered is not run', async () => {
    const { parts, called } = scripted([saying('new')]);
    const messages = [user('earlier'), calling('old'), user('task')];

    await run(parts, beginning({ messages, task: 2 }), turnsMax);

    expect(called).toEqual([]);
  });

  test('says after the tools of a turn what the user has said meanwhile, and nothing before the first turn', async () => {
    const { parts, asked } = scripted([calling('a'), saying('done')]);
    const taken: number[] = [];
    const said = async (turn: number) => {
      taken.push(turn);
      return [user('for two')];
    };

    await runLoop(beginning(), turnsMax, parts.ask, parts.runTool, said);

    expect(taken).toEqual([1]);
    expect(asked[0]).toEqual([user('task')]);
    expect(asked[1]).toEqual([user('task'), calling('a'), toolAnswer('a'), user('for two')]);
  });

  test('says again what is on record after the tools of a turn', async () => {
    const { parts, asked } = scripted([calling('a'), saying('done')]);
    const messages = [user('task'), calling('a'), toolAnswer('a'), user('for two')];

    await run(parts, beginning({ messages, turns: 1 }), turnsMax);

    expect(asked).toEqual([messages]);
  });

  test('runs the tools of a turn, and sends the model their results', async () => {
    const { parts, asked } = scripted([calling('a', 'b'), calling('c'), saying('done')]);

    expect(await run(parts, beginning(), turnsMax)).toEqual({
      text: 'done',
      isCut: false,
      turns: 3,
    });

    expect(asked[2]).toEqual([
      user('task'),
      calling('a', 'b'),
      toolAnswer('a'),
      toolAnswer('b'),
      calling('c'),
      toolAnswer('c'),
    ]);
  });

  test('sends the results in the order of the calls, not of their completion', async () => {
    const gates = new Map(
      ['a', 'b', 'c'].map((id) => [id, Promise.withResolvers<void>()] as const),
    );
    const { parts, asked } = scripted([calling('a', 'b', 'c'), saying('done')], {
      async runTool({ id }) {
        await gates.get(id)?.promise;
        return toolAnswer(id) as never;
      },
    });

    const result = run(parts, beginning(), turnsMax);
    for (const id of ['c', 'a', 'b']) gates.get(id)?.resolve();
    await result;

    expect(asked[1]?.slice(2)).toEqual(['a', 'b', 'c'].map(toolAnswer));
  });

  test('runs eight tools at a time', async () => {
    const ids = Array.from({ length: 30 }, (_, i) => `c${i}`);
    let running = 0;
    let most = 0;
    const { parts, asked } = scripted([calling(...ids), saying('done')], {
      async runTool({ id }) {
        running += 1;
        most = Math.max(most, running);
        await new Promise(setImmediate);
        running -= 1;
        return toolAnswer(id) as never;
      },
    });

    await run(parts, beginning(), turnsMax);

    expect(most).toBe(8);
    expect(asked[1]?.slice(2)).toEqual(ids.map(toolAnswer));
  });

  test('a tool that rejects ends the loop once the concurrent tools have ended, and no other begins', async () => {
    const neighbour = Promise.withResolvers<void>();
    const ids = ['bad', 'slow', ...Array.from({ length: 20 }, (_, i) => `c${i}`)];
    const begun: string[] = [];
    const { parts, asked } = scripted([calling(...ids)], {
      async runTool({ id }) {
        begun.push(id);
        if (id === 'bad') throw new Error('stopped');
        await neighbour.promise;
        return toolAnswer(id) as never;
      },
    });
    let hasEnded = false;

    const result = run(parts, beginning(), turnsMax).finally(() => {
      hasEnded = true;
    });
    const refused = expect(result).rejects.toThrow('stopped');
    await new Promise(setImmediate);
    expect(hasEnded).toBe(false);
    neighbour.resolve();
    await refused;

    expect(begun).toHaveLength(8);
    expect(asked).toHaveLength(1);
  });

  test('an error of the model ends the loop', async () => {
    const { parts } = scripted([], { ask: () => Promise.reject(new Error('no credentials')) });

    await expect(run(parts, beginning(), turnsMax)).rejects.toThrow('no credentials');
  });

  test.each([1, 2, 7])('asks at most %i times', async (max) => {
    const endless = Array.from({ length: max + 1 }, (_, i) => calling(`c${i}`));
    const { parts, asked, called } = scripted(endless);

    const error = await run(parts, beginning(), max).catch((cause: unknown) => cause);

    expect(error).toBeInstanceOf(LoopError);
    expect((error as Error).message).toBe(
      `The model did not come to an answer within ${max} turns`,
    );
    expect(asked).toHaveLength(max);
    // The last calls have results, so that the dialogue is complete.
    expect(called).toHaveLength(max);
  });

  test('turns of an earlier run count', async () => {
    const { parts, asked } = scripted([]);
    const messages = [user('task'), calling('a'), toolAnswer('a')];

    const result = run(parts, beginning({ messages, turns: 3 }), 3);

    await expect(result).rejects.toBeInstanceOf(LoopError);
    expect(asked).toEqual([]);
  });

  test('an answer on record is the result, even past the bound', async () => {
    const { parts, asked } = scripted([]);
    const messages = [user('task'), calling('a'), toolAnswer('a'), saying('done')];

    const result = await run(parts, beginning({ messages, turns: 9 }), 3);

    expect(result).toEqual({ text: 'done', isCut: false, turns: 9 });
    expect(asked).toEqual([]);
  });

  test('an empty answer without calls is a result', async () => {
    const { parts } = scripted([saying('')]);

    expect(await run(parts, beginning(), turnsMax)).toEqual({
      text: '',
      isCut: false,
      turns: 1,
    });
  });

  test('sends the model the corrections, and returns the next answer', async () => {
    const { parts, asked } = scripted([saying('bad'), saying('worse'), saying('good')]);
    const messages = [user('task'), saying('bad')];
    const corrections = ['it is bad', 'it is worse'];

    const result = await run(parts, beginning({ messages, turns: 1, corrections }), turnsMax);

    expect(result).toEqual({ text: 'good', isCut: false, turns: 3 });
    expect(asked.at(-1)).toEqual([
      user('task'),
      saying('bad'),
      user('it is bad'),
      saying('worse'),
      user('it is worse'),
    ]);
  });
});

describe('an interrupted dialogue', () => {
  /** Turns of a model, each with the tools that it calls; some answers are wrong. */
  const turns = fc.array(fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant('wrong' as const)), {
    maxLength: 8,
  });

  test('continues to the same result, with only the missing turns and tools', async () => {
    await fc.assert(
      fc.asyncProperty(turns, fc.nat(), fc.nat(), fc.boolean(), async (plan, at, gap, isOld) => {
        const answers = [
          ...plan.map((turn, t) =>
            turn === 'wrong'
              ? saying(`wrong ${t}`)
              : calling(...Array.from({ length: turn }, (_, i) => `t${t}c${i}`)),
          ),
          saying('the end'),
        ];
        const corrections = plan.flatMap((turn, t) => (turn === 'wrong' ? [`not ${t}`] : []));
        const history = isOld ? [user('before'), calling('t0c0'), toolAnswer('t0c0')] : [];
        const messages = [...history, user('task')];
        const state = beginning({ messages, task: history.length, corrections });
        const whole = scripted(answers);
        const result = await run(whole.parts, state, turnsMax);

        // On record are some turns, and any of the last turn's tools.
        const recordedTurns = at % (answers.length + 1);
        const recorded = answers.slice(0, recordedTurns).flatMap((answer, t) => {
          const calls = answer.role === 'assistant' ? answer.toolCalls : [];
          const ended = calls.filter(
            (_, i) => t < recordedTurns - 1 || ((gap >> (i % 30)) & 1) === 1,
          );
          return [answer, ...ended.map(({ id }) => toolAnswer(id))];
        });
        const rest = scripted(answers);
        const again = await run(
          rest.parts,
          { ...state, messages: [...messages, ...recorded], turns: recordedTurns },
          turnsMax,
        );

        expect(again).toEqual(result);
        expect(rest.asked).toHaveLength(answers.length - recordedTurns);
        const answered = new Set(
          recorded.flatMap((one) => (one.role === 'tool' ? [one.callId] : [])),
        );
        expect(rest.called).toEqual(whole.called.filter((id) => !answered.has(id)));
        // The model sees every call with its result, recorded or new.
        for (const [i, shown] of rest.asked.entries()) {
          const before = whole.asked[recordedTurns + i] ?? [];
          expect(new Set(shown)).toEqual(new Set(before));
        }
      }),
    );
  });
});
