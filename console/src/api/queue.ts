import { queryOptions } from '@tanstack/react-query';
import { get, type Schema } from './client.ts';
import { live } from './queries.ts';

export type QueueGroup = Schema<'QueueGroup'>;
export type Hold = Schema<'QueueHold'>;
/** A queue of the page's organization, or of all of them with its slots. */
export type QueueOf = Schema<'OwnQueue'> & Partial<Pick<Schema<'WholeQueue'>, 'slots'>>;

/** What waits in the queues; of all organizations for the administrator alone. */
export const queueQuery = (isOfAll: boolean) =>
  queryOptions({
    queryKey: ['queue', isOfAll],
    refetchInterval: live,
    queryFn: (): Promise<QueueState> => (isOfAll ? get('/admin/queue') : get('/api/queue')),
  });

export type QueueState = Omit<Schema<'OwnQueues'>, 'queues'> & {
  readonly queues: readonly QueueOf[];
};
