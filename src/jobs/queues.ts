/** The queues of jobs, and the hints that are sent to them. */
import type { TriggerType } from '../database/tables.ts';
import type { QueueName } from '../kernel/queues.ts';

/** The queues of jobs. */
export const jobQueues = ['skill-execution', 'scheduled-jobs'] as const satisfies QueueName[];

/** Jobs that run by a schedule have a queue of their own (specification: Health and metrics). */
export function queueOf(triggerType: TriggerType): (typeof jobQueues)[number] {
  return triggerType === 'scheduled' ? 'scheduled-jobs' : 'skill-execution';
}
