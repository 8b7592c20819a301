/** The queues by the names that the metrics show (specification: Health and metrics). */
export const queueNames = ['skill-execution', 'webhooks', 'scheduled-jobs'] as const;
export type QueueName = (typeof queueNames)[number];
