import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import type { operations } from './schema.ts';

export type Job = Schema<'Job'>;
export type JobListItem = Schema<'JobListItem'>;
export type JobStep = Schema<'JobStep'>;
export type JobDelivery = Schema<'JobDelivery'>;
export type JobFilters = NonNullable<operations['listJobs']['parameters']['query']>;

/** As many as a page of the API may have. */
const most = 200;

/** Jobs within a time are counted no further. */
export const boundedTotalMax = 10_000;

export const hasEnded = ({ status }: { readonly status: string }): boolean =>
  status !== 'queued' && status !== 'active';

/** `withinMs` asks for jobs that are no older than that, whenever it is asked. */
export const jobsQuery = (filters: JobFilters, withinMs?: number) =>
  queryOptions({
    queryKey: ['jobs', 'list', filters, withinMs],
    queryFn: () => {
      const after = withinMs && { created_after: new Date(Date.now() - withinMs).toISOString() };
      return body(api.GET('/api/jobs', { params: { query: { ...filters, ...after } } }));
    },
    placeholderData: keepPreviousData,
  });

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId],
    queryFn: () =>
      body(
        api.GET('/api/jobs/{jobId}', {
          params: { path: { jobId }, query: { include: 'origin' } },
        }),
      ),
  });

/** What a job that thinks has done, in order: the first 200 steps. */
export const jobStepsQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId, 'steps'],
    queryFn: () =>
      body(
        api.GET('/api/jobs/{jobId}/steps', {
          params: { path: { jobId }, query: { limit: most } },
        }),
      ),
  });

export const jobDeliveriesQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId, 'deliveries'],
    queryFn: () =>
      body(
        api.GET('/api/jobs/{jobId}/deliveries', {
          params: { path: { jobId }, query: { limit: most } },
        }),
      ),
  });

export const cancelJob = (jobId: string) =>
  body(api.POST('/api/jobs/{jobId}/cancel', { params: { path: { jobId } } }));

export const retryJob = (jobId: string) =>
  body(api.POST('/api/jobs/{jobId}/retry', { params: { path: { jobId } } }));
