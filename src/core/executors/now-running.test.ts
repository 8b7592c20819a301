import { afterEach, expect, test, vi } from 'vitest';
import { parseMark, RunningMark } from './now-running.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

test.runIf(process.platform === 'linux')('a child shows what it has begun, from its start', () => {
  const shown = { platform: process.platform, title: 'node' };
  vi.stubGlobal('process', shown);
  const mark = new RunningMark();
  expect(parseMark(shown.title)).toEqual({ id: 0, isBeginning: false });

  mark.begin(7, 'a/v1.0/b');
  expect(parseMark(shown.title)).toEqual({ id: 7, isBeginning: true });
  mark.rest();
  expect(parseMark(shown.title)).toEqual({ id: 7, isBeginning: false });
});

test.each(['', '\0\0', 'x', 'node\0child.ts', 'skill executor', 'skill executor #7'])(
  'the title %j says nothing about runs',
  (title) => {
    expect(parseMark(title)).toBeUndefined();
  },
);
