import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type LogLine, memoryLog } from '../../../test/fixtures/skills/driver.ts';
import { systemClock } from '../../kernel/clock.ts';
import { Loading } from './loading.ts';

const lines: LogLine[] = [];
const onLate = vi.fn();
let loading: Loading;
beforeEach(() => {
  vi.useFakeTimers();
  lines.length = 0;
  onLate.mockReset();
  const clock = { ...systemClock, monotonic: () => performance.now() };
  loading = new Loading(
    { isFirst: false, hasPlan: false, loadMs: 60_000 },
    { pid: 7, clock, log: memoryLog(lines) },
    onLate,
  );
});
afterEach(() => {
  loading.stop();
  vi.useRealTimers();
});

test('each file has the whole load time, for any number of files', () => {
  for (const file of ['/skills/a.ts', '/skills/b.ts', '/skills/c.ts']) {
    loading.take(['loading', file]);
    vi.advanceTimersByTime(59_999);
  }
  expect(onLate).not.toHaveBeenCalled();
  expect(loading.take(['ready'])).toBe('ready');
});

test('the error of a file that takes longer names the file and the setting', () => {
  loading.take(['loading', '/skills/a.ts']);
  vi.advanceTimersByTime(60_000);
  expect(onLate).toHaveBeenCalledOnce();
  expect(loading.failure('SIGKILL', '')).toMatchObject({
    file: '/skills/a.ts',
    message:
      '/skills/a.ts: did not finish loading within 60000 ms; SKILL_LOAD_MS is how long it may take',
  });
});

test('the error of a process that never began to load says so', () => {
  vi.advanceTimersByTime(60_000);
  expect(loading.failure('SIGKILL', '')?.message).toMatch(
    /^an executor did not begin to load skills within 60000 ms/,
  );
});

test('a slow file is logged while it loads, and with its duration at the end', () => {
  loading.take(['loading', '/skills/a.ts']);
  vi.advanceTimersByTime(1_999);
  loading.take(['loading', '/skills/slow.ts']);
  vi.advanceTimersByTime(11_000);
  loading.take(['loading', '/skills/b.ts']);
  loading.take(['ready']);
  vi.advanceTimersByTime(100_000);
  const slow = { level: 'warn', executor: 7, file: '/skills/slow.ts' };
  expect(lines).toEqual([
    { ...slow, message: 'a skill is still loading', ms: 2_000 },
    { ...slow, message: 'a skill was slow to load', ms: 11_000 },
  ]);
  expect(onLate).not.toHaveBeenCalled();
});
