import { queryOptions } from '@tanstack/react-query';
import { api, body } from './client.ts';
import type { operations } from './schema.ts';

type JobFilters = NonNullable<operations['listJobs']['parameters']['query']>;

export const jobsQuery = (query: JobFilters) =>
  queryOptions({
    queryKey: ['jobs', 'list', query],
    queryFn: () => body(api.GET('/api/jobs', { params: { query } })),
  });

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId],
    queryFn: () => body(api.GET('/api/jobs/{jobId}', { params: { path: { jobId } } })),
  });

export const cancelJob = (jobId: string) =>
  body(api.POST('/api/jobs/{jobId}/cancel', { params: { path: { jobId } } }));
