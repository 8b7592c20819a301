import { afterEach, describe, expect, test, vi } from 'vitest';

/** A copy of the module: its clock is set here to the far future, which the ids of other tests must not see. */
const ownCopy = './ids.ts?own-copy';
const { continueAfter, idFloor, isId, newId } = (await import(
  ownCopy
)) as typeof import('./ids.ts');

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const timeOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

/** The clock of the module only grows, so each test stands later than the one before. */
let moment = Date.parse('2150-01-01T00:00:00.000Z');
function standStill(): number {
  moment += 86_400_000;
  vi.useFakeTimers({ now: moment, toFake: ['Date'] });
  return moment;
}
afterEach(() => {
  vi.useRealTimers();
});

describe('ids', () => {
  test('are UUIDv7 strings that begin with the moment of their creation', () => {
    const now = standStill();

    const id = newId();

    expect(id).toMatch(uuidV7);
    expect(timeOf(id)).toBe(now);
  });

  test('sort by creation within a millisecond, however many there are', () => {
    const now = standStill();

    const ids = Array.from({ length: 10_000 }, newId);

    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every((id) => uuidV7.test(id))).toBe(true);
    // 4,096 fit into a millisecond; the others borrow from the next ones.
    expect(timeOf(ids.at(-1) as string)).toBe(now + 2);
  });

  test('sort by creation from one millisecond to the next', () => {
    const now = standStill();

    const ids = Array.from({ length: 1_000 }, (_, i) => {
      vi.setSystemTime(now + i);
      return newId();
    });

    expect(ids.toSorted()).toEqual(ids);
  });

  test('sort after one of a process whose clock is ahead, until the moment is later', () => {
    const now = standStill();
    const time = (now + 50).toString(16).padStart(12, '0');
    const theirs = `${time.slice(0, 8)}-${time.slice(8)}-7ffe-8000-000000000000`;

    continueAfter(theirs);
    const ours = [newId(), newId()];
    vi.setSystemTime(now + 60);
    const later = newId();

    expect([theirs, ...ours, later].toSorted()).toEqual([theirs, ...ours, later]);
    expect(ours.map(timeOf)).toEqual([now + 50, now + 51]);
    expect(timeOf(later)).toBe(now + 60);
  });

  test('are made by the clock alone where what they are to follow is none', () => {
    const now = standStill();

    continueAfter('no id');

    expect(timeOf(newId())).toBe(now);
  });

  test('sort by creation when the wall clock is set back an hour', () => {
    const now = standStill();
    const before = newId();

    vi.setSystemTime(now - 3_600_000);
    const after = Array.from({ length: 5_000 }, newId);

    expect([before, ...after].toSorted()).toEqual([before, ...after]);
  });

  test('of one millisecond cannot be guessed from each other', () => {
    standStill();

    const tails = Array.from({ length: 1_000 }, () => newId().slice(19));

    expect(new Set(tails).size).toBe(1_000);
    // Each of the 62 bits after the variant is 0 and 1 about equally often.
    const bits = tails.map((tail) => BigInt(`0x${tail.replaceAll('-', '')}`));
    for (let bit = 0n; bit < 62n; bit++) {
      const ones = bits.filter((value) => (value >> bit) & 1n).length;
      expect(ones).toBeGreaterThan(350);
      expect(ones).toBeLessThan(650);
    }
  });

  test('are told from moments: the floor of a moment lies between the ids before and after it', () => {
    const now = standStill();
    const earlier = newId();
    vi.setSystemTime(now + 1);
    const later = newId();

    expect(idFloor(now) <= earlier).toBe(true);
    expect(earlier < idFloor(now + 1)).toBe(true);
    expect(idFloor(now + 1) <= later).toBe(true);
    expect(idFloor(-5)).toBe('00000000-0000-7000-8000-000000000000');
    expect(idFloor(now + 0.75)).toBe(idFloor(now));
    expect(idFloor(now)).toMatch(uuidV7);
  });
});

describe('a path parameter', () => {
  test('may be an id', () => {
    expect(isId(newId())).toBe(true);
    expect(isId(crypto.randomUUID())).toBe(true);
  });

  test.each([
    '',
    'x',
    '0191f3b0-0000-7000-8000-00000000000',
    '0191f3b0-0000-7000-8000-0000000000000',
    '0191F3B0-0000-7000-8000-000000000000',
    ' 0191f3b0-0000-7000-8000-000000000000',
    '0191f3b0-0000-7000-8000-000000000000\n',
    '{0191f3b0-0000-7000-8000-000000000000}',
    '0191f3b0000070008000000000000000',
    "0191f3b0-0000-7000-8000-00000000000'",
    '0191f3b0-0000-7000-8000-00000000000\0',
  ])('%j cannot be one', (text) => {
    expect(isId(text)).toBe(false);
  });
});
