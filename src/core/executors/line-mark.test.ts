import { expect, test } from 'vitest';
import { createLineMarker, LineMark } from './line-mark.ts';

test('the last line that was marked is read, also after the mark is closed', () => {
  const mark = new LineMark();
  const begin = createLineMarker(mark.fd);
  expect(mark.last()).toBe(0);

  for (const line of [1, 2, 2 ** 40 + 1]) {
    begin(line);
    expect(mark.last()).toBe(line);
  }

  mark.close();
  mark.close();
  expect(mark.last()).toBe(2 ** 40 + 1);
});
