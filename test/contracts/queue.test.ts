/** The queue's contract, held by each implementation. */
import { vi } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { createMemoryQueue } from '../../src/queue/memory.ts';
import { describeQueue } from './queue-contract.ts';

describeQueue('the queue in memory', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let failures = 0;
  const log = createLogger('error', { write: () => void failures++ });
  return {
    queue: createMemoryQueue(log),
    delayMs: 3_600_000,
    elapse: async (ms) => void (await vi.advanceTimersByTimeAsync(ms)),
    failures: () => failures,
    async close() {
      vi.useRealTimers();
    },
  };
});
