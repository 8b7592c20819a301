/**
 * The contract of every queue (`src/adapters/queue/queue.ts`): a suite for
 * the adapter that `open` makes. Nothing here knows whether time is real.
 */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Hint, Queue } from '../../src/adapters/queue/queue.ts';
import { waitFor } from '../support/wait-for.ts';

/** An empty queue that no other test uses. */
export interface QueueBench {
  readonly queue: Queue;
  /** A delay that the tests may use: long beside what the queue itself needs. */
  readonly delayMs: number;
  /** Lets so much time pass, and what falls due in it happen. */
  elapse(ms: number): Promise<void>;
  /** Log lines about handlers that failed. */
  failures(): number;
  /** After the queue was closed. */
  close(): Promise<void>;
}

const name = 'skill-execution';

const hint = (id: string, more: Partial<Hint> = {}): Hint => ({
  id,
  generation: 0,
  delayMs: 0,
  ...more,
});

/** A handler that stays in each hint until it is let go, and remembers what it was given. */
function heldHandler() {
  const begun: string[] = [];
  const held = new Map<string, () => void>();
  return {
    begun,
    running: () => held.size,
    handle({ id }: { readonly id: string }): Promise<void> {
      begun.push(id);
      const { promise, resolve } = Promise.withResolvers<void>();
      expect(held.has(id), `${id} is handled twice at once`).toBe(false);
      held.set(id, resolve);
      return promise;
    },
    letGo(id: string): void {
      const resolve = held.get(id);
      held.delete(id);
      resolve?.();
    },
    letAllGo(): void {
      for (const id of [...held.keys()]) this.letGo(id);
    },
  };
}

export function describeQueue(title: string, open: () => Promise<QueueBench>): void {
  async function bench(): Promise<QueueBench> {
    const made = await open();
    onTestFinished(async () => {
      await made.queue.close();
      await made.close();
    });
    return made;
  }

  describe(`${title} carries hints`, () => {
    test('to a consumer, in the order in which they were sent, with what they announce', async () => {
      const { queue } = await bench();
      const handled: unknown[] = [];
      queue.consume(name, ({ id, organizationId }) => void handled.push([id, organizationId]));

      queue.sendHints(name, [hint('a', { organizationId: 'acme' }), hint('b')]);
      await waitFor(() => handled.length === 2, { describe: 'two hints are handled' });
      queue.sendHints(name, [hint('c')]);
      await waitFor(() => handled.length === 3, { describe: 'the third is handled' });

      expect(handled).toEqual([
        ['a', 'acme'],
        ['b', undefined],
        ['c', undefined],
      ]);
    });

    test('of each organization, however many hints of others are sent with them', async () => {
      const { queue } = await bench();
      const handled = new Set<string | undefined>();
      queue.consume(name, ({ organizationId }) => void handled.add(organizationId));

      const busy = Array.from({ length: 1_000 }, (_, i) =>
        hint(`row-${i}`, { organizationId: 'busy' }),
      );
      queue.sendHints(name, [...busy, hint('a', { organizationId: 'quiet' })]);

      await waitFor(() => handled.size === 2, { describe: 'both are handled' });
      expect([...handled].toSorted()).toEqual(['busy', 'quiet']);
    });

    test('again when a hint to a row is sent after it was handled', async () => {
      const { queue } = await bench();
      const handled: string[] = [];
      queue.consume(name, ({ id }) => void handled.push(id));
      queue.sendHints(name, [hint('a')]);
      await waitFor(() => handled.length === 1, { describe: 'the row is handled' });

      queue.sendHints(name, [hint('a', { generation: 1 })]);

      await waitFor(() => handled.length === 2, { describe: 'it is handled again' });
      expect(handled).toEqual(['a', 'a']);
    });

    test('to the consumers of their own queue alone', async () => {
      const { queue } = await bench();
      const handled: string[] = [];
      for (const one of ['skill-execution', 'webhooks', 'scheduled-jobs'] as const) {
        queue.consume(one, ({ id }) => void handled.push(`${one}: ${id}`));
      }

      queue.sendHints('webhooks', [hint('same')]);
      queue.sendHints('scheduled-jobs', [hint('same')]);

      await waitFor(() => handled.length === 2, { describe: 'both are handled' });
      expect(handled.toSorted()).toEqual(['scheduled-jobs: same', 'webhooks: same']);
    });
  });

  describe(`${title} waits`, () => {
    test('as long as a hint says, and no hint waits for another', async () => {
      const { queue, delayMs, elapse } = await bench();
      const handled: string[] = [];
      queue.consume(name, ({ id }) => void handled.push(id));

      queue.sendHints(name, [
        hint('late', { delayMs: 2 * delayMs }),
        hint('later', { delayMs: 4 * delayMs }),
        hint('now'),
      ]);
      await waitFor(() => handled.length === 1, { describe: 'the one that is due is handled' });
      await elapse(delayMs);
      expect(handled).toEqual(['now']);

      await elapse(delayMs);
      await waitFor(() => handled.length === 2, { describe: 'the late one is handled' });
      await elapse(delayMs);
      expect(handled).toEqual(['now', 'late']);

      await elapse(delayMs);
      await waitFor(() => handled.length === 3, { describe: 'the later one is handled' });
      expect(handled).toEqual(['now', 'late', 'later']);
    });

    test('once for a row to which a hint is sent twice with a delay', async () => {
      const { queue, delayMs, elapse } = await bench();
      const handled: string[] = [];
      queue.consume(name, ({ id }) => void handled.push(id));

      queue.sendHints(name, [hint('a', { delayMs }), hint('a', { delayMs })]);
      queue.sendHints(name, [hint('a', { delayMs })]);
      await elapse(2 * delayMs);
      await waitFor(() => handled.includes('a'), { describe: 'the row is handled' });
      queue.sendHints(name, [hint('last')]);

      await waitFor(() => handled.includes('last'), { describe: 'the last one is handled' });
      expect(handled).toEqual(['a', 'last']);
    });
  });

  describe(`${title} has handlers`, () => {
    test('of which a slow one delays no other', async () => {
      const { queue } = await bench();
      const handler = heldHandler();
      const quick: string[] = [];
      queue.consume(name, async (sent) => {
        if (sent.id === 'slow') await handler.handle(sent);
        else quick.push(sent.id);
      });

      queue.sendHints(name, [hint('slow'), hint('a'), hint('b'), hint('c')]);

      await waitFor(() => quick.length === 3, { describe: 'the quick ones are handled' });
      expect(handler.running()).toBe(1);
      handler.letAllGo();
    });

    test('that may throw: it is logged, not tried again, and the next hint is handled', async () => {
      const { queue, failures } = await bench();
      const handled: string[] = [];
      queue.consume(name, ({ id }) => {
        handled.push(id);
        if (id === 'throws') throw new Error('at once');
        return id === 'rejects' ? Promise.reject(new Error('later')) : Promise.resolve();
      });

      queue.sendHints(name, [hint('throws'), hint('rejects'), hint('fine')]);

      await waitFor(() => handled.includes('fine') && failures() === 2, {
        describe: 'the next hint is handled',
      });
      expect(handled).toEqual(['throws', 'rejects', 'fine']);
    });
  });

  describe(`${title} stops`, () => {
    test('when its handlers have ended, and takes no more hints', async () => {
      const { queue } = await bench();
      const handler = heldHandler();
      const consumer = queue.consume(name, (sent) => handler.handle(sent));
      queue.sendHints(name, [hint('a'), hint('b')]);
      await waitFor(() => handler.running() === 2, { describe: 'two are being handled' });

      let stopped = false;
      const stopping = consumer.stop().then(() => {
        stopped = true;
      });
      handler.letGo('a');
      await new Promise(setImmediate);
      expect(stopped).toBe(false);
      handler.letGo('b');
      await stopping;
      queue.sendHints(name, [hint('c')]);
      await new Promise(setImmediate);

      expect(handler.begun).toEqual(['a', 'b']);
    });

    test('at once when nothing is being handled, and as often as it is asked', async () => {
      const { queue } = await bench();
      const consumer = queue.consume(name, () => {});

      await Promise.all([consumer.stop(), consumer.stop()]);
      await consumer.stop();
    });
  });

  describe(`${title} is bounded`, () => {
    test('it runs low while few hints are to be handled, not while thousands are, and again when they have been', async () => {
      const { queue } = await bench();
      const handled = new Set<string>();
      const held = Promise.withResolvers<void>();
      expect(queue.isRunningLow(name)).toBe(true);
      queue.consume(name, async ({ id }) => {
        await held.promise;
        handled.add(id);
      });

      queue.sendHints(
        name,
        Array.from({ length: 5_000 }, (_, i) => hint(`row-${i}`)),
      );
      await waitFor(() => !queue.isRunningLow(name), { describe: 'enough hints wait' });
      expect(queue.isRunningLow('webhooks')).toBe(true);

      held.resolve();
      await waitFor(() => handled.size === 5_000, { describe: 'all are handled' });
      await waitFor(() => queue.isRunningLow(name), { describe: 'it runs low again' });
    });
  });

  describe(`${title} closes`, () => {
    test('and says whether it can be reached', async () => {
      const { queue } = await bench();
      await waitFor(() => queue.isConnected(), { describe: 'it is connected' });

      await queue.close();

      expect(queue.isConnected()).toBe(false);
    });

    test('as often as it is asked; hints sent afterwards are dropped without an error', async () => {
      const { queue, delayMs, elapse } = await bench();
      const handled: string[] = [];
      const consumer = queue.consume(name, ({ id }) => void handled.push(id));
      queue.sendHints(name, [hint('delayed', { delayMs })]);
      await consumer.stop();

      await Promise.all([queue.close(), queue.close()]);
      queue.sendHints(name, [hint('a'), hint('b', { delayMs })]);
      await elapse(2 * delayMs);

      expect(handled).toEqual([]);
    });
  });
}
