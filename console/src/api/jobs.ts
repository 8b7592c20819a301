import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { get, post, type QueryOf, type Schema } from './client.ts';

export type Job = Schema<'Job'>;
export type JobListItem = Schema<'JobListItem'>;
export type JobStep = Schema<'JobStep'>;
export type StepPrompt = Schema<'StepPrompt'>;
export type JobDelivery = Schema<'JobDelivery'>;
export type JobFilters = QueryOf<'listJobs'>;

/** The largest page of the API. */
const most = 200;

/** Jobs within a time are counted no further. */
export const boundedTotalMax = 10_000;

const unended = ['queued', 'active', 'waiting'];

export const hasEnded = ({ status }: { readonly status: string }): boolean =>
  !unended.includes(status);

/** `withinMs` asks for jobs that are no older than that, whenever it is asked. */
export const jobsQuery = (filters: JobFilters, withinMs?: number) =>
  queryOptions({
    queryKey: ['jobs', 'list', filters, withinMs],
    queryFn: () => {
      const after = withinMs && { created_after: new Date(Date.now() - withinMs).toISOString() };
      return get('/api/jobs', { query: { ...filters, ...after } });
    },
    placeholderData: keepPreviousData,
  });

/** Jobs that a job started, shown at once. */
export const childrenPageSize = 20;

/** A page, counted from 1, of the jobs that a job started. */
export const childJobsQuery = (jobId: string, page: number) =>
  jobsQuery({
    parent_job_id: jobId,
    include: 'timing',
    limit: childrenPageSize,
    offset: (page - 1) * childrenPageSize,
  });

export const jobQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId],
    queryFn: () => get('/api/jobs/{jobId}', { path: { jobId }, query: { include: 'origin' } }),
  });

/** Steps that a page shows at once. */
export const stepsPageSize = most;

/** A page, counted from 1, of a job's steps in order. */
export const jobStepsQuery = (jobId: string, page = 1) =>
  queryOptions({
    queryKey: ['jobs', jobId, 'steps', page],
    queryFn: () =>
      get('/api/jobs/{jobId}/steps', {
        path: { jobId },
        query: { limit: stepsPageSize, offset: (page - 1) * stepsPageSize },
      }),
    placeholderData: keepPreviousData,
  });

/** What a call of a model was sent: whole, or what differs from the turn before. It never changes. */
export const stepPromptQuery = (jobId: string, step: number, as: 'whole' | 'difference') =>
  queryOptions({
    queryKey: ['jobs', jobId, 'prompts', step, as],
    queryFn: () =>
      get('/api/jobs/{jobId}/steps/{step}/prompt', {
        path: { jobId, step: String(step) },
        query: { as },
      }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Waits that a page shows at once. */
const waitsMax = 50;

/** What a job waits for now: its first open waits, and how many there are. */
export const jobWaitsQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId, 'steps', 'waiting'],
    queryFn: () =>
      get('/api/jobs/{jobId}/steps', {
        path: { jobId },
        query: { status: 'waiting', limit: waitsMax },
      }),
  });

export const jobDeliveriesQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['jobs', jobId, 'deliveries'],
    queryFn: () => get('/api/jobs/{jobId}/deliveries', { path: { jobId }, query: { limit: most } }),
  });

export const cancelJob = (jobId: string) => post('/api/jobs/{jobId}/cancel', { path: { jobId } });

/** Of a conversation's jobs, the newest first: the one that runs, before those that wait for it; else the newest. */
export function runningAmong(jobs: readonly JobListItem[]): JobListItem | undefined {
  return jobs.findLast((job) => !hasEnded(job)) ?? jobs[0];
}

/** `resume` goes on from what the job has recorded. */
export const retryJob = (jobId: string, resume: boolean) =>
  post('/api/jobs/{jobId}/retry', { path: { jobId }, body: { resume } });
