/** Yields the slots of runs that only wait, for a model or for the database, to other jobs. */
import { once } from '../../kernel/once.ts';
import type { JobQueue } from './queues.ts';
import type { JobRunner } from './runner.ts';

/** Yields a slot of a queue that a job of the organization has; the returned function (resume) takes it back. */
export type YieldSlot = (queue: JobQueue, organizationId: string) => () => void;

/** At most `max` slots of all queues together are yielded at a time; a run beyond them keeps its own. */
export function createYieldSlot(
  runners: ReadonlyMap<JobQueue, Pick<JobRunner, 'yieldSlot'>>,
  max: number,
): YieldSlot {
  let yielded = 0;
  return (queue, organizationId) => {
    const resume = yielded < max ? runners.get(queue)?.yieldSlot(organizationId) : undefined;
    if (resume === undefined) return () => {};
    yielded += 1;
    return once(() => {
      yielded -= 1;
      resume();
    });
  };
}
