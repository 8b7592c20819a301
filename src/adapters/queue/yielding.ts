/** Yields the slots of runs that only wait, for a model or for the database, to other jobs. */
import type { QueueName } from '../../kernel/queues.ts';
import { once } from './once.ts';
import type { Consumer, YieldSlot } from './queue.ts';

/** At most `max` slots of all queues together are yielded at a time; a run beyond them keeps its own. */
export function createYieldSlot(
  consumers: ReadonlyMap<QueueName, Pick<Consumer, 'yieldSlot'>>,
  max: number,
): YieldSlot {
  let yielded = 0;
  return (queue, organizationId) => {
    const resume = yielded < max ? consumers.get(queue)?.yieldSlot(organizationId) : undefined;
    if (resume === undefined) return () => {};
    yielded += 1;
    return once(() => {
      yielded -= 1;
      resume();
    });
  };
}
