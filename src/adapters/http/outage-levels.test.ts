import { expect, test } from 'vitest';
import { OutageLevels } from './outage-levels.ts';

test('each cause of an outage is a warning once a minute', () => {
  let now = 0;
  const levels = new OutageLevels();
  const levelOf = (cause: unknown) => levels.levelOf(cause, now);
  const disk = new Error('disk I/O error');
  const index = new Error('database disk image is malformed');

  expect([levelOf(disk), levelOf(index), levelOf(disk), levelOf(index)]).toEqual([
    'warn',
    'warn',
    'debug',
    'debug',
  ]);
  now = 60_000;
  expect(levelOf(disk)).toBe('warn');
});

test('a refusal without a cause is no outage', () => {
  expect(new OutageLevels().levelOf(undefined)).toBe('debug');
});
