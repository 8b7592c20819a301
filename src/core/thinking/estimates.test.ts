import { describe, expect, test } from 'vitest';
import {
  sizeOfMessages,
  sizeOfText,
  sumOfSizes,
  type TextSize,
} from '../../adapters/models/text-size.ts';
import { Estimates } from './estimates.ts';

const english =
  'The agent answered the question of the customer, who had asked about a refund for an order that never arrived. ';
const chinese = '客户询问从未到达的订单的退款情况。我们随后检查了记录，发现包裹丢失。';
const arabic = 'سأل العميل عن استرداد ثمن طلب لم يصل أبدا. راجعنا السجلات. ';
const emoji = '😀🎉🚀🔥💡👍🏽👩‍💻🏳️‍🌈🇩🇪🤖✅';
const code =
  'def f(x):\n    for i in range(10):\n        if x[i] == 0x1F:\n            return {"key": i**2}\n';
const base64 = 'uZ5cVv8yG0bq3Jf9QmT1xKp7rLw2HdNs6AeXoIiYtB4kRgCzMjOUPaDlEnFhWS+/';

/** As many bytes as 8,000, about. */
const long = (text: string) => text.repeat(Math.ceil(8_000 / Buffer.byteLength(text)));
const sizeOf = (text: string) => sizeOfText(long(text));

/** The share of its room at which a dialogue is summarized. */
const summarizedAt = 0.8;

describe('the size of a text', () => {
  const kinds = (text: string) => {
    const { framing: _, ...bytes } = sizeOfText(text);
    return bytes;
  };

  test.each([
    ['Two small words', { words: 15 }],
    ['getUserName x1', { dense: 13, words: 1 }],
    ['a  b', { words: 3, dense: 1 }],
    ['HTTP/1.1', { dense: 8 }],
    ['é', { two: 2 }],
    ['漢字', { three: 6 }],
    ['🚀', { four: 4 }],
    ['\ud83d', { three: 3 }],
    [`${'x'.repeat(20)}y`, { runs: 21 }],
    ['x'.repeat(21), { words: 21 }],
    ['d41d8cd98f00b204e9800998ecf8427e', { runs: 32 }],
    ['', {}],
  ])('%j has %j', (text, expected) => {
    expect(kinds(text)).toEqual({
      words: 0,
      dense: 0,
      runs: 0,
      two: 0,
      three: 0,
      four: 0,
      ...expected,
    });
  });

  test('has every byte once', () => {
    const text = [english, chinese, arabic, emoji, code, base64].join('\n');

    const bytes = Object.values(kinds(text)).reduce((sum, n) => sum + n, 0);

    expect(bytes).toBe(Buffer.byteLength(text));
  });

  test('of messages has their texts, their calls and what is around them', () => {
    const { framing, ...bytes } = sizeOfMessages([
      { role: 'user', text: 'ab' },
      { role: 'assistant', text: 'c', toolCalls: [{ id: 'x', name: 'tool', input: '{}' }] },
      { role: 'tool', callId: 'x', name: 'tool', text: '漢', isError: false },
    ]);

    expect(framing).toBe(32);
    expect(bytes).toMatchObject({ words: 7, dense: 26, three: 3 });
  });
});

describe('without a report', () => {
  // Measured with the tokenizers o200k_base, cl100k_base, r50k_base (GPT-2), Llama's and Claude 2's: the
  // least and the most tokens of the same texts, for each byte.
  test.each([
    ['English', english, 0.2, 0.22],
    ['Chinese', chinese, 0.24, 0.7],
    ['Arabic', arabic, 0.18, 0.55],
    ['emoji', emoji, 0.44, 0.89],
    ['code', code, 0.4, 0.63],
    ['base64', base64, 0.68, 0.83],
  ])('%s is bounded by more than any tokenizer counts', (_, text, least, largest) => {
    const estimates = new Estimates();
    const size = sizeOf(text);
    const bytes = Buffer.byteLength(long(text));

    expect(estimates.bound('a/b', size)).toBeGreaterThan(largest * bytes);
    expect(estimates.bound('a/b', size)).toBeLessThanOrEqual(bytes);
    expect(estimates.expected('a/b', size)).toBeGreaterThan(least * bytes * 0.6);
    expect(estimates.expected('a/b', size)).toBeLessThan(largest * bytes * 1.3);
  });

  test.each([
    ['English', english, 0.2, 0.22],
    ['Chinese', chinese, 0.24, 0.45],
    ['Arabic', arabic, 0.18, 0.4],
    ['emoji', emoji, 0.44, 0.77],
    ['code', code, 0.4, 0.63],
    ['base64', base64, 0.68, 0.83],
  ])(
    '%s is summarized before it fills a window, and not far too early',
    (_, text, least, largest) => {
      const measure = new Estimates().measure(['a/b']);
      const bytes = Buffer.byteLength(long(text));

      expect(measure.tokensOf(sizeOf(text))).toBeGreaterThanOrEqual(largest * bytes * summarizedAt);
      expect(measure.tokensOf(sizeOf(text))).toBeLessThan(least * bytes * 2.4);
    },
  );

  test('what is around messages counts as it is', () => {
    const estimates = new Estimates();
    const framing = { ...sizeOfText(''), framing: 24 };

    expect([estimates.bound('a/b', framing), estimates.expected('a/b', framing)]).toEqual([24, 24]);
  });
});

describe('a report', () => {
  const words: TextSize = { ...sizeOfText(''), words: 1_000 };

  test('of one kind of text bounds the next with a margin of a tenth, for its model alone', () => {
    const estimates = new Estimates();

    estimates.learn('a/b', words, 200);

    expect([estimates.bound('a/b', words), estimates.expected('a/b', words)]).toEqual([220, 200]);
    expect([estimates.bound('a/c', words), estimates.expected('a/c', words)]).toEqual([600, 240]);
  });

  test('says nothing about other kinds of text', () => {
    const estimates = new Estimates();
    const unknown = estimates.bound('a/b', sizeOf(chinese));

    estimates.learn('a/b', sizeOf(english), 1_700);

    expect(estimates.bound('a/b', sizeOf(english))).toBeLessThan(2_100);
    expect(estimates.bound('a/b', sizeOf(chinese))).toBe(unknown);
  });

  test('of a mixed text bounds each kind by what the other may have left to it', () => {
    const estimates = new Estimates();
    const mixed = sumOfSizes([sizeOf(english), sizeOf(code)]);
    const [tokens, ofCode] = [1_700 + 3_300, estimates.bound('a/b', sizeOf(code))];

    estimates.learn('a/b', mixed, tokens);

    expect(estimates.bound('a/b', mixed)).toBeGreaterThan(tokens);
    expect(estimates.bound('a/b', sizeOf(code))).toBeLessThanOrEqual(ofCode);
  });

  test('counts among the last twenty: the largest for the bound, their average for what is expected', () => {
    const estimates = new Estimates();

    estimates.learn('a/b', words, 500);
    for (let i = 0; i < 19; i++) estimates.learn('a/b', words, 100);
    expect([estimates.bound('a/b', words), estimates.expected('a/b', words)]).toEqual([550, 120]);

    estimates.learn('a/b', words, 100);
    expect([estimates.bound('a/b', words), estimates.expected('a/b', words)]).toEqual([110, 100]);
  });

  test('beyond the bytes of a short prompt says what the provider adds to each', () => {
    const estimates = new Estimates();
    const short = { ...sizeOfText(''), words: 10, framing: 8 };

    estimates.learn('a/b', short, 60);

    expect([estimates.bound('a/b', short), estimates.expected('a/b', short)]).toEqual([65, 57]);
    expect(estimates.bound('a/b', words)).toBe(600 + 51);
  });

  test('is planned for in a window with a margin of a tenth, those on longer prompts more', () => {
    const estimates = new Estimates();
    const long = { ...words, words: 99_000 };

    estimates.learn('a/b', words, 500);
    estimates.learn('a/b', long, 25_000);

    const rate = 0.24 * 1.1 * ((500 * (500 / 240) + 25_000 * (25_000 / 23_760)) / 25_500);
    expect(estimates.measure(['a/b']).tokensOf(long)).toBe(Math.ceil(99_000 * rate));
    // A model that has not reported yet does not widen what another has reported.
    expect(estimates.measure(['a/c', 'a/b']).tokensOf(long)).toBe(Math.ceil(99_000 * rate));
    expect(estimates.measure(['a/c']).tokensOf(words)).toBe(336);
  });

  test('of fewer tokens than any tokenizer counts says nothing about a window', () => {
    const estimates = new Estimates();

    estimates.learn('a/b', words, 100);

    expect(estimates.measure(['a/b']).tokensOf(words)).toBe(336);
  });

  test('that is absurd is bounded, and one of zero is ignored', () => {
    const estimates = new Estimates();

    estimates.learn('a/b', words, 0);
    expect(estimates.bound('a/b', words)).toBe(600);
    estimates.learn('a/b', words, 1_000_000);
    expect([estimates.bound('a/b', words), estimates.expected('a/b', words)]).toEqual([
      2_100, 2_100,
    ]);
    estimates.learn('a/c', words, 1);
    expect(estimates.bound('a/c', words)).toBe(27);
  });
});
