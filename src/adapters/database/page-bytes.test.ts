import { describe, expect, test } from 'vitest';
import { cutPage } from './page-bytes.ts';

const rowsOf = (...sizes: number[]) => sizes.map((bytes) => ({ bytes }));

describe('a page that is bounded in bytes', () => {
  test('is whole where its rows fit', () => {
    const { rows, next } = cutPage(rowsOf(3, 3, 4), { offset: 20 }, 10);

    expect(rows).toHaveLength(3);
    expect(next).toBeNull();
  });

  test('ends before the first row that does not fit, and says where to go on', () => {
    const { rows, next } = cutPage(rowsOf(3, 3, 5, 1), { offset: 20 }, 10);

    expect(rows).toHaveLength(2);
    expect(next).toBe(22);
  });

  test('has at least one row, however large', () => {
    const { rows, next } = cutPage(rowsOf(11, 1), { offset: 0 }, 10);

    expect(rows).toHaveLength(1);
    expect(next).toBe(1);
  });

  test('is empty where there are no rows', () => {
    expect(cutPage([], { offset: 5 })).toEqual({ rows: [], next: null });
  });
});
