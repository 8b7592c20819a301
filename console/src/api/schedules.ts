import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Schedule = Schema<'ScheduledJob'>;
export type ListedSchedule = Schema<'ListedScheduledJob'>;
export type ScheduledRun = Schema<'ScheduledRun'>;

/** As many slots as the calendar shows: a page of the API at its largest. */
export const calendarMax = 200;

export const schedulesQuery = () =>
  queryOptions({
    queryKey: ['schedules'],
    queryFn: () =>
      body(api.GET('/api/scheduled-jobs', { params: { query: { include: 'refusal' } } })),
  });

export const scheduleQuery = (jobId: string) =>
  queryOptions({
    queryKey: ['schedules', jobId],
    queryFn: () =>
      body(
        api.GET('/api/scheduled-jobs/{jobId}', {
          params: { path: { jobId }, query: { include: 'refusal' } },
        }),
      ),
    refetchInterval: live,
  });

/** What became of its slots, the newest first. */
export const scheduleRunsQuery = (jobId: string, limit: number, offset = 0) =>
  queryOptions({
    queryKey: ['schedules', jobId, 'runs', { limit, offset }],
    queryFn: () =>
      body(
        api.GET('/api/scheduled-jobs/{jobId}/runs', {
          params: { path: { jobId }, query: { limit, offset } },
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

/** The next matches of an expression in a zone; the platform's error for an invalid one. */
export const cronPreviewQuery = (cron_expression: string, timezone: string, count = 5) =>
  queryOptions({
    queryKey: ['cron', cron_expression, timezone, count],
    queryFn: () =>
      body(
        api.GET('/api/scheduled-jobs/preview', {
          params: { query: { cron_expression, timezone, count } },
        }),
      ),
    refetchInterval: 60_000,
  });

export const createSchedule = (fields: Schema<'NewScheduledJob'>) =>
  body(api.POST('/api/scheduled-jobs', { body: fields }));

export const changeSchedule = (jobId: string, changes: Partial<Schema<'ScheduledJobChanges'>>) =>
  body(
    api.PUT('/api/scheduled-jobs/{jobId}', {
      params: { path: { jobId } },
      body: changes as Schema<'ScheduledJobChanges'>,
    }),
  );

export const deleteSchedule = (jobId: string) =>
  body(api.DELETE('/api/scheduled-jobs/{jobId}', { params: { path: { jobId } } }));

export const runSchedule = (jobId: string) =>
  body(api.POST('/api/scheduled-jobs/{jobId}/run', { params: { path: { jobId } } }));
