import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import { readConfig } from '../../src/core/config/config.ts';
import type { Context } from '../../src/core/context/context.ts';
import { RunObservers } from '../../src/core/context/run-observer.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { manualClock } from './manual-clock.ts';

/** The context of a platform with default settings and a clock that stands still; `parts` replaces fields of it. */
export function contextOf(parts: Pick<Context, 'database'> & Partial<Context>): Context {
  const log = parts.log ?? createLogger('silent');
  return {
    config: readConfig({}),
    clock: manualClock(),
    queue: new MemoryQueue(log),
    bus: null,
    log,
    writer: 'first',
    observers: new RunObservers(),
    ...parts,
  };
}
