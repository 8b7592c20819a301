import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createLogger } from '../../kernel/log.ts';
import { createMemoryQueue } from './memory.ts';
import type { Consumer } from './queue.ts';

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

/** How many rows of an organization a consumer offers slots to, of 1,000. */
function offered(consumer: Consumer, organizationId = ''): number {
  const offer = consumer.offerSlots();
  return Array.from({ length: 1_000 }, () => offer(organizationId)).filter(Boolean).length;
}

describe('a consumer', () => {
  test('offers as many slots as it has, less those of the running rows, and none before waiting rows', async () => {
    const { queue } = queueWithoutConsumer();
    const held = Promise.withResolvers<void>();
    const consumer = queue.consume(name, 5, () => held.promise);
    expect(offered(consumer)).toBe(5);

    queue.sendHints(name, hints(2));
    expect(offered(consumer)).toBe(3);

    queue.sendHints(name, hints(4, 0, 'more'));
    expect(offered(consumer)).toBe(0);
    held.resolve();
    await vi.waitFor(() => expect(offered(consumer)).toBe(5), waiting);
  });

  test('counts work without a hint among what it handles', async () => {
    const { queue } = queueWithoutConsumer();
    const handled: string[] = [];
    const consumer = queue.consume(name, 1, async (id) => void handled.push(id));
    const work = Promise.withResolvers<void>();

    consumer.run({ id: 'row' }, () => work.promise);
    queue.sendHints(name, hints(1));
    await new Promise(setImmediate);
    expect(offered(consumer)).toBe(0);
    expect(handled).toEqual([]);

    work.resolve();
    await vi.waitFor(() => expect(handled).toEqual(['row-0']), waiting);
  });

  test('that is stopped has no slot, and waits for the work without a hint', async () => {
    const { queue } = queueWithoutConsumer();
    const consumer = queue.consume(name, 2, async () => {});
    const work = Promise.withResolvers<void>();
    let isIdle = false;
    consumer.run({ id: 'row' }, () => work.promise);

    const stopped = consumer.stop().then(() => {
      isIdle = true;
    });
    await new Promise(setImmediate);
    expect({ isIdle, slots: offered(consumer) }).toEqual({ isIdle: false, slots: 0 });

    work.resolve();
    await stopped;
  });
});

describe('organizations', () => {
  /** A consumer with 32 slots, of which two more are kept for organizations that run nothing. */
  function sharedConsumer() {
    const { queue } = queueWithoutConsumer();
    const running = new Map<string, () => void>();
    const consumer = queue.consume(name, 32, (id) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      running.set(id, resolve);
      return promise;
    });
    const send = (organizationId: string, n: number) =>
      queue.sendHints(
        name,
        hints(n, 0, organizationId).map((hint) => ({ ...hint, organizationId })),
      );
    const runningOf = (organizationId: string) =>
      [...running.keys()].filter((id) => id.startsWith(`${organizationId}-`));
    return {
      queue,
      consumer,
      send,
      runs: (organizationId: string) => runningOf(organizationId).length,
      async end(organizationId: string, n: number) {
        for (const id of runningOf(organizationId).slice(0, n)) {
          running.get(id)?.();
          running.delete(id);
          await new Promise(setImmediate);
        }
      },
    };
  }

  test('that are alone have all slots', () => {
    const { send, runs } = sharedConsumer();

    send('busy', 100);

    expect(runs('busy')).toBe(32);
  });

  test('begin at once while another one has all slots, as many as slots are kept', () => {
    const { send, runs } = sharedConsumer();
    send('busy', 100);

    send('a', 5);
    send('b', 5);
    send('c', 5);

    expect([runs('busy'), runs('a'), runs('b'), runs('c')]).toEqual([32, 1, 1, 0]);
  });

  test('share the slots as the runs of one that had all of them end', async () => {
    const { send, runs, end } = sharedConsumer();
    send('busy', 1_000);
    send('other', 1_000);

    await end('busy', 40);

    // A third each, and a third is free for others.
    expect([runs('busy'), runs('other')]).toEqual([10, 11]);
    send('third', 1_000);
    expect(runs('third')).toBe(5);
  });

  test('have all slots again when no other one waits', async () => {
    const { send, runs, end } = sharedConsumer();
    send('busy', 1_000);
    send('other', 3);

    await end('busy', 20);
    await end('other', 3);
    await end('other', 3);

    expect([runs('busy'), runs('other')]).toEqual([32, 0]);
  });

  test('keep the slots that their waiting runs have yielded to them', () => {
    const { consumer, send, runs } = sharedConsumer();
    send('busy', 1_000);

    const resumes = Array.from({ length: 8 }, () => consumer.yieldSlot('busy'));
    expect(runs('busy')).toBe(40);
    for (const resume of resumes) resume();
    send('other', 2);

    expect(runs('other')).toBe(0);
  });

  test('are offered no slot beyond their share, in the transaction that accepts a row either', () => {
    const { consumer, send } = sharedConsumer();
    expect(offered(consumer, 'busy')).toBe(32);
    send('busy', 33);

    expect(offered(consumer, 'busy')).toBe(0);
    expect(offered(consumer, 'other')).toBe(1);
    const offer = consumer.offerSlots();
    expect(['a', 'b', 'c', 'a'].map(offer)).toEqual([true, true, false, false]);
  });

  test('have places for hints while another one has filled them', async () => {
    const { queue, handled, handleAll } = queueWithoutConsumer();
    const of = (organizationId: string, n: number, delayMs = 0) =>
      hints(n, delayMs, organizationId).map((hint) => ({ ...hint, organizationId }));
    queue.sendHints(name, of('busy', 30_000));
    queue.sendHints(name, of('busy', 30_000, 1_000));

    queue.sendHints(name, of('other', 10));
    queue.sendHints(name, of('late', 10, 1_000));
    await vi.advanceTimersByTimeAsync(1_000);
    await handleAll();

    expect(handled.filter((id) => id.startsWith('other'))).toHaveLength(10);
    expect(handled.filter((id) => id.startsWith('late'))).toHaveLength(10);
    expect(handled.length).toBeLessThan(40_100);
  });
});
