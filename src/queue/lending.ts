/** Lends the places of what only waits: for a model, for the database. */
import type { QueueName } from '../kernel/queues.ts';
import { once } from './once.ts';
import type { Consumer, Lend } from './queue.ts';

/** Of all queues together, `max` places are lent at a time; the others are kept by who has them. */
export function createLending(
  consumers: ReadonlyMap<QueueName, Pick<Consumer, 'lend'>>,
  max: number,
): Lend {
  let lent = 0;
  return (queue) => {
    const giveBack = lent < max ? consumers.get(queue)?.lend() : undefined;
    if (giveBack === undefined) return () => {};
    lent += 1;
    return once(() => {
      lent -= 1;
      giveBack();
    });
  };
}
