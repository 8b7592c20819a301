import { expect, test } from 'vitest';
import type { QueueName } from '../kernel/queues.ts';
import { createLending } from './lending.ts';

/** Consumers that only count what is lent. */
function counting(...names: QueueName[]) {
  const lent = new Map<QueueName, number>();
  const add = (name: QueueName, n: number) => void lent.set(name, (lent.get(name) ?? 0) + n);
  const consumers = new Map(
    names.map((name) => [
      name,
      {
        lend() {
          add(name, 1);
          return () => add(name, -1);
        },
      },
    ]),
  );
  return { consumers, lentOf: (name: QueueName) => lent.get(name) ?? 0 };
}

test('lends places of the queue that is named, and takes them back', () => {
  const { consumers, lentOf } = counting('skill-execution', 'scheduled-jobs');
  const lend = createLending(consumers, 10);

  const giveBack = lend('scheduled-jobs');

  expect([lentOf('skill-execution'), lentOf('scheduled-jobs')]).toEqual([0, 1]);
  giveBack();
  expect(lentOf('scheduled-jobs')).toBe(0);
});

test('lends no more at a time than it may, of all queues together', () => {
  const { consumers, lentOf } = counting('skill-execution', 'scheduled-jobs');
  const lend = createLending(consumers, 2);

  const first = lend('skill-execution');
  lend('scheduled-jobs');
  const beyond = lend('skill-execution');

  expect(lentOf('skill-execution')).toBe(1);
  beyond();
  expect(lentOf('skill-execution')).toBe(1);
  first();
  lend('scheduled-jobs');
  expect([lentOf('skill-execution'), lentOf('scheduled-jobs')]).toEqual([0, 2]);
});

test('counts a place that is given back twice once', () => {
  const { consumers, lentOf } = counting('skill-execution');
  const lend = createLending(consumers, 1);

  const giveBack = lend('skill-execution');
  giveBack();
  giveBack();
  lend('skill-execution');
  lend('skill-execution');

  expect(lentOf('skill-execution')).toBe(1);
});

test('lends nothing where nothing is taken from the queue', () => {
  const lend = createLending(new Map(), 1);

  expect(() => lend('webhooks')()).not.toThrow();
});
