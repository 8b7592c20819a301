/** The queues of jobs, and the hints that are sent to them. */
import type { TriggerType } from '../../adapters/database/tables.ts';
import type { Hint, Queue } from '../../adapters/queue/queue.ts';
import type { QueueName } from '../../kernel/queues.ts';
import type { HintedJob } from './jobs.store.ts';

/** The queues of jobs. */
export const jobQueues = ['skill-execution', 'scheduled-jobs'] as const satisfies QueueName[];
export type JobQueue = (typeof jobQueues)[number];

/** Jobs that run by a schedule have a queue of their own (specification: Health and metrics). */
export function queueOf(triggerType: TriggerType): JobQueue {
  return triggerType === 'scheduled' ? 'scheduled-jobs' : 'skill-execution';
}

/**
 * A hint for a job: it announces that jobs of its organization are due. `generation` tells its hints apart: the number of its
 * claims, or that and more.
 */
export function hintOf(
  job: { readonly id: string; readonly organization_id: string },
  generation: Hint['generation'],
  delayMs = 0,
): Hint {
  return { id: job.id, generation, delayMs, organizationId: job.organization_id };
}

/** Sends a hint for a job to its queue. */
export function sendHint(
  queue: Pick<Queue, 'sendHints'>,
  job: HintedJob,
  generation: Hint['generation'],
  delayMs?: number,
): void {
  queue.sendHints(queueOf(job.trigger_type), [hintOf(job, generation, delayMs)]);
}
