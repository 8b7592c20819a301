import { expect, test } from 'vitest';
import type { JobQueue } from '../queues.ts';
import type { JobRunners } from '../turns/runner.ts';
import { YieldedSlots } from './yielding.ts';

/** Runners that only count the yielded slots. */
function counting(...names: JobQueue[]) {
  const yielded = new Map<JobQueue, number>();
  const add = (name: JobQueue, n: number) => void yielded.set(name, (yielded.get(name) ?? 0) + n);
  const runners = new Map(
    names.map((name) => [
      name,
      {
        yieldSlot() {
          add(name, 1);
          return () => add(name, -1);
        },
      },
    ]),
  );
  return {
    runners: runners as unknown as JobRunners,
    yieldedOf: (name: JobQueue) => yielded.get(name) ?? 0,
  };
}

test('yields slots of the named queue, and takes them back', () => {
  const { runners, yieldedOf } = counting('skill-execution', 'scheduled-jobs');
  const slots = new YieldedSlots(runners, 10);

  const resume = slots.yieldSlot('scheduled-jobs', 'default');

  expect([yieldedOf('skill-execution'), yieldedOf('scheduled-jobs')]).toEqual([0, 1]);
  resume();
  expect(yieldedOf('scheduled-jobs')).toBe(0);
});

test('yields at most the given number of slots of all queues together', () => {
  const { runners, yieldedOf } = counting('skill-execution', 'scheduled-jobs');
  const slots = new YieldedSlots(runners, 2);

  const first = slots.yieldSlot('skill-execution', 'default');
  slots.yieldSlot('scheduled-jobs', 'default');
  const beyond = slots.yieldSlot('skill-execution', 'default');

  expect(yieldedOf('skill-execution')).toBe(1);
  beyond();
  expect(yieldedOf('skill-execution')).toBe(1);
  first();
  slots.yieldSlot('scheduled-jobs', 'default');
  expect([yieldedOf('skill-execution'), yieldedOf('scheduled-jobs')]).toEqual([0, 2]);
});

test('counts a slot once that is taken back twice', () => {
  const { runners, yieldedOf } = counting('skill-execution');
  const slots = new YieldedSlots(runners, 1);

  const resume = slots.yieldSlot('skill-execution', 'default');
  resume();
  resume();
  slots.yieldSlot('skill-execution', 'default');
  slots.yieldSlot('skill-execution', 'default');

  expect(yieldedOf('skill-execution')).toBe(1);
});

test('yields nothing where the queue has no runner', () => {
  const slots = new YieldedSlots(new Map(), 1);

  expect(() => slots.yieldSlot('scheduled-jobs', 'default')()).not.toThrow();
});
