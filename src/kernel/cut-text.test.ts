import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cutToBytes, cutToUnits, firstUnits } from './cut-text.ts';

const texts = fc.string({ unit: 'grapheme', maxLength: 30 });
const bounds = fc.integer({ min: 8, max: 40 });

describe('the beginning of a text', () => {
  test('in code units ends with a whole character', () => {
    expect(firstUnits('a😀b', 2)).toBe('a');
    expect(firstUnits('a😀b', 3)).toBe('a😀');
    expect(firstUnits('a😀b', 9)).toBe('a😀b');
    expect(cutToUnits('a😀b', 4)).toBe('a😀b');
    expect(cutToUnits('a😀bc', 4)).toBe('a😀…');
    expect(cutToUnits('a😀bc', 3)).toBe('a…');
  });

  test('in bytes ends with a whole character and its note', () => {
    expect(cutToBytes('aé', 3)).toBe('aé');
    expect(cutToBytes('aéb', 3)).toBe('aé');
    expect(cutToBytes('aéb', 2)).toBe('a');
    expect(cutToBytes('ééé', 5, '!')).toBe('éé!');
  });

  test('is well-formed and within its bound', () => {
    fc.assert(
      fc.property(texts, bounds, (text, max) => {
        const units = cutToUnits(text, max);
        const bytes = cutToBytes(text, max, '[cut]');
        expect(units.length).toBeLessThanOrEqual(max);
        expect(Buffer.byteLength(bytes)).toBeLessThanOrEqual(max);
        expect([units, bytes].every((one) => one.isWellFormed())).toBe(true);
        expect(text.startsWith(units.replace(/…$/, ''))).toBe(true);
      }),
    );
  });
});
