import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DialogueMessage } from '../../adapters/models/model.ts';
import { sizeOfText } from '../../adapters/models/text-size.ts';
import {
  asHistory,
  cutText,
  fitDialogue,
  openCalls,
  tokensOfMessages as tokensIn,
} from './dialogue.ts';
import { Estimates } from './estimates.ts';

const measure = new Estimates().measure(['a/model']);
const tokensOfText = (text: string) => measure.tokensOf(sizeOfText(text));
const tokensOfMessages = (messages: readonly DialogueMessage[]) => tokensIn(messages, measure);

const user = (text: string): DialogueMessage => ({ role: 'user', text });
const saying = (text: string, ...ids: string[]): DialogueMessage => ({
  role: 'assistant',
  text,
  toolCalls: ids.map((id) => ({ id, name: 'tool', input: '{}' })),
});
const answer = (callId: string, text = `of ${callId}`): DialogueMessage => ({
  role: 'tool',
  callId,
  name: 'tool',
  text,
  isError: false,
});

/** Any text, lone surrogates included. */
const anyText = fc.string({ unit: 'binary', maxLength: 60 });
const longText = fc
  .tuple(anyText, fc.nat(3_000))
  .map(([text, length]) => text.repeat(1 + Math.ceil(length / (text.length + 1))));

/** An exchange: a message of the user, turns whose tools all answer, and mostly a final answer. */
const exchange = fc
  .record({ task: longText, turns: fc.array(fc.array(longText, { maxLength: 3 })), end: anyText })
  .map(({ task, turns, end }) => (at: number) => [
    user(task),
    ...turns.flatMap((results, t) => {
      const ids = results.map((_, i) => `e${at}t${t}c${i}`);
      return [saying('', ...ids), ...results.map((text, i) => answer(ids[i] as string, text))];
    }),
    ...(end === '' ? [] : [saying(end)]),
  ]);
const dialogue = fc
  .array(exchange, { minLength: 1, maxLength: 6 })
  .map((exchanges) => exchanges.map((make, i) => make(i)));

/** Every call is followed by its result, and every result follows its call. */
function expectWhole(messages: readonly DialogueMessage[]): void {
  const open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant') {
      expect([...open]).toEqual([]);
      for (const { id } of message.toolCalls) open.add(id);
    } else if (message.role === 'tool') expect(open.delete(message.callId)).toBe(true);
    else expect([...open]).toEqual([]);
  }
  expect([...open]).toEqual([]);
}

/** A result of which the model gets the beginning, and a note of how to read on. */
const cutAnswer = (callId: string, text: string, kept: number) =>
  answer(
    callId,
    `${text.slice(0, kept)}\n[${text.length - kept} more characters were left out; read_result reads on: call_id "${callId}", offset ${kept}]`,
  );

describe('fitting a dialogue', () => {
  test('does not change a dialogue that fits', () => {
    const messages = [user('one'), saying('two'), user('three')];

    expect(fitDialogue(messages, 2, tokensOfMessages(messages), measure)).toEqual({
      messages,
      leftOut: 0,
      cut: 0,
      fits: true,
    });
  });

  test('leaves out whole exchanges, the oldest first, and no more than necessary', () => {
    const old = [user('a'.repeat(300)), saying('', 'x'), answer('x'), saying('b')];
    const newer = [user('c'), saying('d')];
    const current = [user('task')];
    const messages = [...old, ...newer, ...current];

    const max = tokensOfMessages(messages) - 1;

    expect(fitDialogue(messages, 6, max, measure)).toEqual({
      messages: [...newer, ...current],
      leftOut: 4,
      cut: 0,
      fits: true,
    });
  });

  test('cuts results of the current exchange only when nothing older is left, the oldest first', () => {
    const long = 'x'.repeat(3_000);
    const messages = [
      user('old'),
      user('task'),
      saying('', 'a', 'b'),
      answer('a', long),
      answer('b', long),
      saying('', 'c'),
      answer('c', long),
    ];

    const fitted = fitDialogue(messages, 1, tokensOfMessages(messages) - 100, measure);

    expect(fitted).toMatchObject({ fits: true, leftOut: 1, cut: 1 });
    expect(fitted.messages[2]).toEqual(cutAnswer('a', long, 400));
    expect(fitted.messages[3]).toEqual(answer('b', long));
    expect(fitted.messages[5]).toEqual(answer('c', long));
  });

  test('lets the results of one turn share the room equally, in any script', () => {
    const texts = ['short', 'x'.repeat(50_000), '漢'.repeat(20_000), 'y'.repeat(50_000)];
    const ids = texts.map((_, i) => `c${i}`);
    const results = texts.map((text, i) => answer(`c${i}`, text));
    const messages = [user('task'), saying('', ...ids), ...results];

    const fitted = fitDialogue(messages, 0, 30_000, measure);

    expect(fitted).toMatchObject({ fits: true, leftOut: 0, cut: 3 });
    expect(fitted.messages[2]).toEqual(results[0]);
    for (const { text } of fitted.messages.slice(3)) {
      expect(tokensOfText(text)).toBeGreaterThan(9_600);
      expect(tokensOfText(text)).toBeLessThan(10_000);
    }
  });

  test('never cuts the task or the text of the model, and reports that it does not fit', () => {
    const messages = [user('x'.repeat(3_000)), saying('y'.repeat(3_000))];

    expect(fitDialogue(messages, 0, 100, measure)).toEqual({
      messages,
      leftOut: 0,
      cut: 0,
      fits: false,
    });
  });

  test('holds for any dialogue and any maximum', () => {
    fc.assert(
      fc.property(dialogue, fc.double({ min: -0.2, max: 1.2, noNaN: true }), (exchanges, part) => {
        const messages = exchanges.flat();
        const current = exchanges.slice(0, -1).flat().length;
        const max = Math.floor(tokensOfMessages(messages) * part);

        const fitted = fitDialogue(messages, current, max, measure);

        // The report is true, and a dialogue that fits is within the maximum.
        expect(fitted.fits).toBe(tokensOfMessages(fitted.messages) <= max);
        expect(fitted.leftOut).toBe(messages.length - fitted.messages.length);
        // The task and the text of the model are unchanged.
        const own = messages.slice(current);
        const kept = fitted.messages.slice(current - fitted.leftOut);
        expect(kept[0]).toEqual(own[0]);
        expect(kept.map(({ role }) => role)).toEqual(own.map(({ role }) => role));
        for (const [i, one] of kept.entries()) {
          if (one.role !== 'tool') expect(one).toEqual(own[i]);
          else expect({ ...one, text: '' }).toEqual({ ...own[i], text: '' });
        }
        // The newest messages are kept, from the start of an exchange.
        const before = fitted.messages.slice(0, current - fitted.leftOut);
        expect(before).toEqual(messages.slice(fitted.leftOut, current));
        if (before.length > 0) expect(before[0]?.role).toBe('user');
        expectWhole(fitted.messages);
        // No exchange is left out without need.
        if (fitted.leftOut > 0) {
          const last = exchanges.findLast((_, i) => {
            const end = exchanges.slice(0, i + 1).flat().length;
            return end <= fitted.leftOut;
          });
          const more = messages.slice(fitted.leftOut - (last?.length ?? 0));
          expect(tokensOfMessages(more)).toBeGreaterThan(max);
        }
        // No result is cut while an older exchange could be left out.
        const isCut = kept.some((one, i) => one.text !== own[i]?.text);
        if (isCut) expect(fitted.leftOut).toBe(current);
        expect(fitted.cut).toBe(kept.filter((one, i) => one.text !== own[i]?.text).length);
      }),
    );
  });
});

describe('cutting a text', () => {
  test('says how much was left out', () => {
    expect(cutText('abcdef', 6)).toBe('abcdef');
    expect(cutText('abcdef', 4)).toBe('abcd\n[2 more characters were left out]');
  });

  test('never cuts a character in two', () => {
    expect(cutText('a😀b', 2)).toBe('a\n[3 more characters were left out]');
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, max) => {
        const cut = cutText(text, max);

        expect(cut.isWellFormed()).toBe(true);
        const [kept = ''] = cut.split(/\n\[\d+ more characters were left out\]$/);
        expect(text.startsWith(kept)).toBe(true);
        if (text.length > max) expect(kept.length).toBeLessThanOrEqual(max);
      }),
    );
  });
});

describe('the history of earlier runs', () => {
  test('leaves out calls without results, results without calls, and opaque data', () => {
    const opaque = { ...saying('', 'a', 'b'), opaque: { x: 1 } } as DialogueMessage;

    expect(
      asHistory([
        answer('lost'),
        saying('before any question'),
        user('one'),
        opaque,
        answer('b'),
        saying('', 'never'),
        user('two'),
        saying('words', 'never too'),
        answer('of no call'),
      ]),
    ).toEqual([user('one'), saying('', 'b'), answer('b'), user('two'), saying('words')]);
  });

  test('a call that a later run repeats under the same id is not answered by that one', () => {
    expect(
      asHistory([
        user('one'),
        saying('', 'call_0'),
        user('two'),
        saying('', 'call_0'),
        answer('call_0'),
        saying('end'),
      ]),
    ).toEqual([user('one'), user('two'), saying('', 'call_0'), answer('call_0'), saying('end')]);
  });

  test('a repeated id is replaced by a unique one', () => {
    const twice = [user('x'), saying('', 'c'), answer('c')];

    const history = asHistory([...twice, ...twice]);

    expect(history.slice(3)).toEqual([user('x'), saying('', 'c_2'), answer('c_2', 'of c')]);
  });

  test('turns of two interleaved dialogues are told apart', () => {
    expect(
      asHistory([user('x'), saying('', 'a'), saying('', 'b'), answer('b'), answer('a')]),
    ).toEqual([user('x'), saying('', 'a'), answer('a'), saying('', 'b'), answer('b')]);
  });

  test('is complete and in order for any record', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'a_2');
    const messages = fc.array(
      fc.oneof(
        anyText.map(user),
        fc
          .tuple(fc.constantFrom('', 'x'), fc.array(id, { maxLength: 3 }))
          .map(([text, ids]) => saying(text, ...ids)),
        id.map((callId) => answer(callId)),
      ),
    );
    fc.assert(
      fc.property(messages, (recorded) => {
        const history = asHistory(recorded);

        expectWhole(history);
        if (history.length > 0) expect(history[0]?.role).toBe('user');
        const ids = history.flatMap((one) =>
          one.role === 'assistant' ? one.toolCalls.map((call) => call.id) : [],
        );
        expect(new Set(ids).size).toBe(ids.length);
        expect(history.filter(({ role }) => role === 'user')).toEqual(
          recorded.filter(({ role }) => role === 'user'),
        );
        for (const one of history) {
          if (one.role === 'assistant') expect(one.text + one.toolCalls.length).not.toBe('0');
        }
        expect(asHistory(history)).toEqual(history);
      }),
    );
  });
});

describe('open calls', () => {
  test('are those of the last turn that have no answer', () => {
    expect(openCalls([user('x')])).toEqual([]);
    expect(
      openCalls([saying('', 'old'), saying('', 'a', 'b'), answer('b')]).map(({ id }) => id),
    ).toEqual(['a']);
    expect(openCalls([saying('', 'a'), answer('a')])).toEqual([]);
    expect(openCalls([answer('a'), saying('', 'a')]).map(({ id }) => id)).toEqual(['a']);
  });
});
