import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cleanText } from '../../kernel/text.ts';
import { TextBatches } from './text-batches.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function listening() {
  const pieces: string[] = [];
  return { pieces, deltas: new TextBatches((text) => void pieces.push(text)) };
}

describe('the text that a model streams', () => {
  test('is passed on at once, then in batches of 100 ms', () => {
    const { pieces, deltas } = listening();

    for (const word of ['a', 'b', 'c']) deltas.add(word);
    expect(pieces).toEqual(['a']);
    vi.advanceTimersByTime(99);
    expect(pieces).toEqual(['a']);
    vi.advanceTimersByTime(1);
    expect(pieces).toEqual(['a', 'bc']);
    deltas.add('d');
    vi.advanceTimersByTime(100);
    expect(pieces).toEqual(['a', 'bc', 'd']);
    deltas.end();
  });

  test('is passed on at once again after a pause', () => {
    const { pieces, deltas } = listening();

    deltas.add('a');
    vi.advanceTimersByTime(1_000);
    deltas.add('b');

    expect(pieces).toEqual(['a', 'b']);
    deltas.end();
  });

  test('is passed on at once when a batch is full', () => {
    const { pieces, deltas } = listening();

    deltas.add('a');
    deltas.add('x'.repeat(4_095));
    expect(pieces).toHaveLength(1);
    deltas.add('x');

    expect(pieces[1]).toHaveLength(4_096);
    deltas.end();
  });

  test('is passed on at the end, and no timer is left', () => {
    const { pieces, deltas } = listening();

    deltas.add('a');
    deltas.add('b');
    deltas.end();

    expect(pieces).toEqual(['a', 'b']);
    expect(vi.getTimerCount()).toBe(0);
    expect(listening().pieces).toEqual([]);
  });

  test('is passed on completely, and never cut in the middle of a character', () => {
    const parts = fc.array(
      fc.tuple(
        fc.constantFrom('a', '\ud83d', '\ude00', '😀', '\0', 'x'.repeat(5_000)),
        fc.nat(250),
      ),
    );
    fc.assert(
      fc.property(parts, (said) => {
        const { pieces, deltas } = listening();
        for (const [text, ms] of said) {
          deltas.add(text);
          vi.advanceTimersByTime(ms);
        }
        deltas.end();

        expect(pieces.join('')).toBe(cleanText(said.map(([text]) => text).join('')));
        for (const piece of pieces) {
          expect(piece).not.toBe('');
          expect(piece.isWellFormed()).toBe(true);
        }
        expect(vi.getTimerCount()).toBe(0);
      }),
    );
  });
});
