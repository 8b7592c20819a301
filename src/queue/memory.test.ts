import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLogger } from '../kernel/log.ts';
import { createMemoryQueue } from './memory.ts';

const name = 'skill-execution';
/** Its second is short for a busy machine. */
const waiting = { timeout: 10_000 };
const hints = (n: number, delayMs = 0, prefix = 'row') =>
  Array.from({ length: n }, (_, i) => ({ id: `${prefix}-${i}`, generation: 0, delayMs }));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A queue and everything that it has handled. */
function queueWithoutConsumer() {
  const queue = createMemoryQueue(createLogger('silent'));
  const handled: string[] = [];
  return {
    queue,
    handled,
    async handleAll() {
      queue.consume(name, 1_000, async (id) => void handled.push(id));
      await vi.advanceTimersByTimeAsync(0);
      await new Promise(setImmediate);
    },
  };
}

describe('the queue in memory never grows without end', () => {
  test('hints beyond 20,000 that are due are dropped, for the sweep to find again', async () => {
    const { queue, handled, handleAll } = queueWithoutConsumer();

    queue.sendHints(name, hints(50_000));
    queue.sendHints(name, hints(10, 0, 'more'));
    await handleAll();

    expect(handled).toHaveLength(20_000);
    expect(handled.at(-1)).toBe('row-19999');
  });

  test('hints beyond 20,000 that wait for their time are dropped', async () => {
    const { queue, handled, handleAll } = queueWithoutConsumer();

    queue.sendHints(name, hints(50_000, 1_000));
    expect(vi.getTimerCount()).toBe(20_000);
    await vi.advanceTimersByTimeAsync(1_000);
    await handleAll();

    expect(handled).toHaveLength(20_000);
  });

  test('a delayed row keeps its place when its hint is sent again while all places are taken', () => {
    const { queue } = queueWithoutConsumer();
    queue.sendHints(name, hints(20_000, 1_000));

    queue.sendHints(name, hints(20_000, 2_000));

    expect(vi.getTimerCount()).toBe(20_000);
  });

  test('a full queue leaves the limits of the others alone', async () => {
    const { queue } = queueWithoutConsumer();
    queue.sendHints(name, hints(50_000));
    const others: string[] = [];

    queue.consume('webhooks', 1, async (id) => void others.push(id));
    queue.sendHints('webhooks', hints(1));
    await new Promise(setImmediate);

    expect(others).toEqual(['row-0']);
  });

  test('it asks for more below 1,000 hints that are due; those that wait do not count', () => {
    const { queue } = queueWithoutConsumer();

    queue.sendHints(name, hints(5_000, 60_000, 'delayed'));
    queue.sendHints(name, hints(999));
    expect(queue.isRunningLow(name)).toBe(true);

    queue.sendHints(name, hints(1_000));
    expect(queue.isRunningLow(name)).toBe(false);
  });
});

describe('the queue in memory leaves nothing behind', () => {
  test('no timer keeps the process alive, and none is left after it closes', async () => {
    const { queue } = queueWithoutConsumer();
    queue.sendHints(name, hints(10, 60_000));

    await queue.close();

    expect(vi.getTimerCount()).toBe(0);
  });

  test('after it closes it holds no hint', async () => {
    const { queue, handled, handleAll } = queueWithoutConsumer();
    queue.sendHints(name, hints(10));

    await queue.close();
    await handleAll();

    expect(handled).toEqual([]);
  });
});

test('a queue has one consumer at a time', async () => {
  const { queue } = queueWithoutConsumer();
  const first = queue.consume(name, 1, async () => {});

  expect(() => queue.consume(name, 1, async () => {})).toThrow('has a consumer already');
  await first.stop();
  queue.consume(name, 1, async () => {});
});

test('a consumer that was stopped long ago does not stop the one after it', async () => {
  const { queue } = queueWithoutConsumer();
  const handled: string[] = [];
  const first = queue.consume(name, 1, async () => {});
  await first.stop();
  queue.consume(name, 1, async (id) => void handled.push(id));

  await first.stop();
  queue.sendHints(name, hints(1));
  await new Promise(setImmediate);

  expect(handled).toEqual(['row-0']);
});

describe('a consumer', () => {
  test('has as many slots as it handles at once, less the running and the waiting rows', async () => {
    const { queue } = queueWithoutConsumer();
    const held = Promise.withResolvers<void>();
    const consumer = queue.consume(name, 5, () => held.promise);
    expect(consumer.freeSlots()).toBe(5);

    queue.sendHints(name, hints(2));
    expect(consumer.freeSlots()).toBe(3);

    queue.sendHints(name, hints(4, 0, 'more'));
    expect(consumer.freeSlots()).toBe(0);
    held.resolve();
    await vi.waitFor(() => expect(consumer.freeSlots()).toBe(5), waiting);
  });

  test('counts work without a hint among what it handles', async () => {
    const { queue } = queueWithoutConsumer();
    const handled: string[] = [];
    const consumer = queue.consume(name, 1, async (id) => void handled.push(id));
    const work = Promise.withResolvers<void>();

    consumer.run('row', () => work.promise);
    queue.sendHints(name, hints(1));
    await new Promise(setImmediate);
    expect(consumer.freeSlots()).toBe(0);
    expect(handled).toEqual([]);

    work.resolve();
    await vi.waitFor(() => expect(handled).toEqual(['row-0']), waiting);
  });

  test('that is stopped has no slot, and waits for the work without a hint', async () => {
    const { queue } = queueWithoutConsumer();
    const consumer = queue.consume(name, 2, async () => {});
    const work = Promise.withResolvers<void>();
    let isIdle = false;
    consumer.run('row', () => work.promise);

    const stopped = consumer.stop().then(() => {
      isIdle = true;
    });
    await new Promise(setImmediate);
    expect({ isIdle, slots: consumer.freeSlots() }).toEqual({ isIdle: false, slots: 0 });

    work.resolve();
    await stopped;
  });
});
