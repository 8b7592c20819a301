import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { get, post, put, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Schedule = Schema<'ScheduledJob'>;
export type ListedSchedule = Schema<'ListedScheduledJob'>;
export type ScheduledRun = Schema<'ScheduledRun'>;

/** As many slots as the calendar shows: a page of the API at its largest. */
export const calendarMax = 200;

export const schedulesQuery = () =>
  queryOptions({
    queryKey: ['schedules'],
    queryFn: () => get('/api/scheduled-jobs', { query: { include: 'refusal' } }),
  });

export const scheduleQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['schedules', jobId],
    queryFn: () =>
      get('/api/scheduled-jobs/{jobId}', { path: { jobId }, query: { include: 'refusal' } }),
    refetchInterval: live,
  });

/** What became of its slots, the newest first. */
export const scheduleRunsQuery = (jobId: string, limit: number, offset = 0) =>
  queryOptions({
    queryKey: ['schedules', jobId, 'runs', { limit, offset }],
    queryFn: () =>
      get('/api/scheduled-jobs/{jobId}/runs', { path: { jobId }, query: { limit, offset } }),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

/** The next matches of an expression in a zone; the platform's error for an invalid one. */
export const cronPreviewQuery = (cron_expression: string, timezone: string, count = 5) =>
  queryOptions({
    queryKey: ['cron', cron_expression, timezone, count],
    queryFn: () =>
      get('/api/scheduled-jobs/preview', { query: { cron_expression, timezone, count } }),
    refetchInterval: 60_000,
  });

export const createSchedule = (fields: Schema<'NewScheduledJob'>) =>
  post('/api/scheduled-jobs', { body: fields });

export const changeSchedule = (jobId: string, changes: Partial<Schema<'ScheduledJobChanges'>>) =>
  put('/api/scheduled-jobs/{jobId}', {
    path: { jobId },
    body: changes as Schema<'ScheduledJobChanges'>,
  });

export const deleteSchedule = (jobId: string) =>
  remove('/api/scheduled-jobs/{jobId}', { path: { jobId } });

export const runSchedule = (jobId: string) =>
  post('/api/scheduled-jobs/{jobId}/run', { path: { jobId } });
