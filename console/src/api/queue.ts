import { queryOptions } from '@tanstack/react-query';
import { get, post, put, type Schema } from './client.ts';
import { live } from './queries.ts';

export type QueueGroup = Schema<'QueueGroup'>;
export type Hold = Schema<'QueueHold'>;
/** A queue of the page's organization, or of all of them with its slots. */
export type QueueOf = Schema<'OwnQueue'> & Partial<Pick<Schema<'WholeQueue'>, 'slots'>>;
/** What has a limit or a pause. */
export type Subject = NonNullable<Hold['subject']>;

/** What waits in the queues; of all organizations for the administrator alone. */
export const queueQuery = (isOfAll: boolean) =>
  queryOptions({
    queryKey: ['queue', isOfAll],
    refetchInterval: live,
    queryFn: (): Promise<QueueState> => (isOfAll ? get('/admin/queue') : get('/api/queue')),
  });

const weightPath = '/admin/organizations/{organizationId}/weight';

/** How many slots an organization gets beside others; for the administrator. */
export const weightQuery = (organizationId: string) =>
  queryOptions({
    queryKey: ['queue', 'weight', organizationId],
    queryFn: () => get(weightPath, { path: { organizationId } }),
    gcTime: 0,
  });

/** Null, of an empty field, is refused with the platform's message. */
export const setWeight = (organizationId: string, weight: number | null) =>
  put(weightPath, { path: { organizationId }, body: { weight: weight as number } });

export type QueueState = Omit<Schema<'OwnQueues'>, 'queues'> & {
  readonly queues: readonly QueueOf[];
};

/** An organization, or an agent of the page's organization. */
export type Limited = Subject & { readonly type: 'organization' | 'agent' };

/** How many of its runs go on at a time, and whether it is paused. */
export const limitQuery = ({ type, id }: Limited) =>
  queryOptions({
    queryKey: ['queue', 'limit', type, id],
    queryFn: () =>
      type === 'agent'
        ? get('/api/agents/{agentId}/queue', { path: { agentId: id } })
        : get('/admin/organizations/{organizationId}/queue', { path: { organizationId: id } }),
    gcTime: 0,
  });

export const setLimit = ({ type, id }: Limited, limit: number | null): Promise<unknown> => {
  const body = { max_concurrency: limit };
  return type === 'agent'
    ? put('/api/agents/{agentId}/queue', { path: { agentId: id }, body })
    : put('/admin/organizations/{organizationId}/queue', { path: { organizationId: id }, body });
};

/** Ends a pause. */
export function resume({ type, id }: Subject): Promise<unknown> {
  if (type === 'agent')
    return post('/api/agents/{agentId}/queue/resume', { path: { agentId: id } });
  if (type === 'organization') {
    return post('/admin/organizations/{organizationId}/resume', { path: { organizationId: id } });
  }
  const [category = '', version = '', skillName = ''] = id.split('/');
  return post('/admin/skills/{category}/{version}/{skillName}/resume', {
    path: { category, version, skillName },
  });
}
