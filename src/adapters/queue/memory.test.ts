import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createLogger } from '../../kernel/log.ts';
import { MemoryQueue } from './memory.ts';

const name = 'skill-execution';
const hints = (n: number, delayMs = 0, prefix = 'row') =>
  Array.from({ length: n }, (_, i) => ({ id: `${prefix}-${i}`, generation: 0, delayMs }));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function openQueue() {
  const queue = new MemoryQueue(createLogger('silent'));
  onTestFinished(() => queue.close());
  return queue;
}

test('hints beyond 20,000 whose handlers are under way are dropped, for the sweep to find again', async () => {
  const queue = openQueue();
  const held = Promise.withResolvers<void>();
  const handled: string[] = [];
  queue.consume(name, ({ id }) => {
    handled.push(id);
    return held.promise;
  });

  queue.sendHints(name, hints(50_000));

  expect(handled).toHaveLength(20_000);
  held.resolve();
});

test('hints beyond 20,000 that wait for their time are dropped', async () => {
  const queue = openQueue();

  queue.sendHints(name, hints(50_000, 1_000));

  expect(vi.getTimerCount()).toBe(20_000);
});

test('a delayed row keeps its place when its hint is sent again while all places are taken', async () => {
  const queue = openQueue();
  const handled: string[] = [];
  queue.consume(name, ({ id }) => void handled.push(id));
  queue.sendHints(name, hints(20_000, 1_000));

  queue.sendHints(name, hints(20_000, 2_000));
  await vi.advanceTimersByTimeAsync(1_999);
  expect(handled).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);

  expect(handled).toHaveLength(20_000);
});

test('after it closes it holds no hint', async () => {
  const queue = openQueue();
  queue.sendHints(name, hints(10, 1_000));

  await queue.close();

  expect(vi.getTimerCount()).toBe(0);
});

test('a queue has one consumer at a time', async () => {
  const queue = openQueue();
  const handled: string[] = [];
  const first = queue.consume(name, () => {});
  expect(() => queue.consume(name, () => {})).toThrow('has a consumer already');

  await first.stop();
  queue.consume(name, ({ id }) => void handled.push(id));
  await first.stop();
  queue.sendHints(name, hints(1));

  expect(handled).toEqual(['row-0']);
});
