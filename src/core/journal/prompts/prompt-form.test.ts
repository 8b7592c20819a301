import { describe, expect, test } from 'vitest';
import type { Json } from '../../../kernel/json.ts';
import { differenceOf } from './prompt-difference.ts';
import {
  KnownPrompts,
  PromptReader,
  promptsNamed,
  recallPrompt,
  rememberPrompt,
  type WrittenPrompt,
  writePrompt,
} from './prompt-form.ts';

/** Prompts of a job that were written one after another, as they are stored. */
class Stored {
  readonly written = new Map<number, WrittenPrompt>();
  readonly from = new Map<number, number>();
  bytes = 0;

  keep(known: KnownPrompts, n: number, body: Json, dialogue = 'a') {
    const prompt = writePrompt(known, dialogue, n, body);
    rememberPrompt(known, prompt);
    this.written.set(n, JSON.parse(prompt.text) as WrittenPrompt);
    this.from.set(n, prompt.from);
    this.bytes += prompt.text.length;
    return prompt;
  }

  get reader(): PromptReader {
    return new PromptReader(this.written);
  }
}

const system = 'You are helpful. '.repeat(100);
const tools = [{ name: 'a', parameters: { type: 'object' } }, { name: 'b' }];
/** What a turn sends: one question, then a call and its result for each turn before. */
function turn(n: number, more: Json = {}): Json {
  const messages: Json[] = [{ role: 'user', content: 'How many? '.repeat(20) }];
  for (let i = 1; i < n; i++) {
    messages.push({ role: 'assistant', content: null, tool_calls: [{ id: `call-${i}` }] });
    messages.push({ role: 'tool', tool_call_id: `call-${i}`, content: `${i} of `.repeat(50) });
  }
  return { model: 'test', max_tokens: 100, system, messages, tools, stream: true, ...more };
}

describe('a kept prompt', () => {
  test('is read byte for byte as it was sent, also with equal, empty, nested and hostile values', () => {
    const hostile: Json[] = [
      turn(1),
      turn(2),
      turn(2),
      turn(4, { tools: [...tools, ...tools], stop: [] }),
      turn(3, { system: undefined, messages: [null, [], '', [[1]], { '1': 1, a: 2, '0': 0 }] }),
      { messages: [{ v: 1 }, [1, 2, 3], { list: [] }], at: [1, 2], v: { v: { at: [9, 9] } } },
      { text: '\u0000\ud800"\\\u2028</script>', messages: ['\u0000'], n: -0.5, none: null },
      {},
      turn(5),
    ];
    const stored = new Stored();
    const known = new KnownPrompts();

    for (const [i, body] of hostile.entries()) stored.keep(known, i + 1, body);

    for (const [i, body] of hostile.entries()) {
      expect(JSON.stringify(stored.reader.bodyOf(i + 1))).toBe(JSON.stringify(body));
    }
  });

  test('counts the bytes of what was sent', () => {
    const bodies = [turn(1), turn(7), {}, { a: [] }, { a: [1], b: 'ü', c: undefined }];

    for (const body of bodies) {
      const { bytes } = writePrompt(new KnownPrompts(), 'a', 1, body);
      expect(bytes).toBe(Buffer.byteLength(JSON.stringify(body)));
    }
  });

  test('costs what is new in it: 200 turns cost less than twice as much as the last one alone', () => {
    const stored = new Stored();
    const known = new KnownPrompts();

    for (let n = 1; n <= 200; n++) stored.keep(known, n, turn(n));

    expect(stored.bytes).toBeLessThan(2 * JSON.stringify(turn(200)).length);
    expect(JSON.stringify(stored.reader.bodyOf(200))).toBe(JSON.stringify(turn(200)));
  });

  test('goes on from 31 earlier ones at most, so that few are read for one', () => {
    const stored = new Stored();
    const known = new KnownPrompts();

    for (let n = 1; n <= 100; n++) stored.keep(known, n, turn(n));

    for (const [n, from] of stored.from) expect(n - from).toBeLessThan(32);
    // The rest lies in values that are named one by one.
    const [last] = [...stored.written].slice(-1);
    expect(promptsNamed(last?.[1] as WrittenPrompt, 100)).toContain(99);
  });

  test('goes on from what an earlier claim has stored', () => {
    const stored = new Stored();
    for (const known = new KnownPrompts(), n = { is: 1 }; n.is <= 40; n.is++)
      stored.keep(known, n.is, turn(n.is));
    const later = new KnownPrompts();

    const place = { n: 40, from: stored.from.get(40) ?? 0, chain: 8 };
    recallPrompt(later, 'a', place, stored.reader);
    const { text } = stored.keep(later, 41, turn(41));

    expect(text.length).toBeLessThan(700);
    expect(JSON.stringify(stored.reader.bodyOf(41))).toBe(JSON.stringify(turn(41)));
  });

  test('is not there where an earlier one that it refers to is gone', () => {
    const stored = new Stored();
    const known = new KnownPrompts();
    stored.keep(known, 1, turn(1));
    stored.keep(known, 2, turn(2));

    stored.written.delete(1);

    expect(stored.reader.bodyOf(2)).toBe(null);
    expect(stored.reader.bodyOf(3)).toBe(null);
  });
});

describe('the difference between two prompts', () => {
  test('names what is as before, and shows what is new, gone and changed', () => {
    const before = { model: 'a', messages: [1, 2, 3, 9], temperature: 1, tools: [{ name: 'x' }] };
    const after = {
      model: 'a',
      messages: [1, 2, 4, 5, 9],
      tools: [{ name: 'x' }],
      stop: ['.'],
      n: 2,
    };

    expect(differenceOf(before, after)).toEqual({
      same: ['model', 'tools'],
      changed: [
        { field: 'messages', same: 2, removed: [3], added: [4, 5], same_at_end: 1 },
        { field: 'stop', same: 0, removed: [], added: ['.'], same_at_end: 0 },
        { field: 'n', after: 2 },
        { field: 'temperature', before: 1 },
      ],
    });
    expect(differenceOf({}, { messages: ['a'] }).changed).toEqual([
      { field: 'messages', same: 0, removed: [], added: ['a'], same_at_end: 0 },
    ]);
  });
});
