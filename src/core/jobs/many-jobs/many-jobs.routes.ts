/** `POST /api/jobs/cancel` and `POST /api/jobs/retry`: many jobs at once, by the filters of the list. */
import { type Static, Type } from 'typebox';
import { acceptingWork, callerOf } from '../../../adapters/http/authenticate.ts';
import type { RateLimiter } from '../../../adapters/http/rate-limit.ts';
import { apiRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { RequestHits } from '../../../adapters/http/request-hits.ts';
import { Timestamp, Words } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { requireMoment } from '../../../kernel/moment.ts';
import { jobFilters } from '../job-filters.schemas.ts';
import type { JobFilters } from '../job-lists.store.ts';
import type { Jobs } from '../jobs.ts';
import { CancelledJobs, RetriedJobs } from './many-jobs.schemas.ts';
import type { ManyCommand } from './many-jobs.ts';

const operation = { tags: ['Jobs'], security: [{ apiKey: [] }] };

const fields = {
  ...jobFilters,
  created_after: Type.Optional(Timestamp),
  created_before: Type.Optional(Timestamp),
  dry_run: Type.Optional(
    Type.Boolean({ description: 'true: only counts the jobs, as remaining.' }),
  ),
  after: Type.Optional(
    Type.String({
      maxLength: 60,
      description: 'next of an earlier answer, where this request goes on.',
    }),
  ),
};

const options = (title: string) => ({
  title,
  additionalProperties: false,
  examples: [{ skill_category: 'web', created_before: '2026-01-01T00:00:00Z', dry_run: true }],
});
const openStatuses = ['queued', 'active', 'waiting'] as const;
const CancelJobs = Type.Object(
  { status: Type.Optional(Words(openStatuses)), ...fields },
  options('CancelJobs'),
);
const RetryJobs = Type.Object(
  {
    status: Type.Optional({
      ...Words(['failed', 'cancelled'] as const),
      description: 'failed, if it is left out.',
    }),
    ...fields,
  },
  options('RetryJobs'),
);

const inParts =
  'The request ends after some seconds; where done is false, repeat it with next as after. Jobs that are accepted ' +
  'after the first of these requests are left out. At least one filter is needed.';

export function manyJobsRoutes(server: Server, jobs: Jobs, limiter: RateLimiter) {
  const cancelSchema = {
    ...operation,
    operationId: 'cancelManyJobs',
    summary: 'Cancel all jobs that filters name',
    description: `Like the cancellation of each of them, the oldest first. ${inParts}`,
    body: CancelJobs,
    response: { 200: CancelledJobs, ...apiRefusals(...bodyRefusals) },
  };
  server.post('/api/jobs/cancel', { schema: cancelSchema }, (request) =>
    jobs.cancelMany(callerOf(request).organizationId, commandOf(request.body)),
  );
  const retrySchema = {
    ...operation,
    operationId: 'retryManyJobs',
    summary: 'Run all failed or cancelled jobs that filters name again',
    description:
      'Like the retry of each of them, the oldest first, with the scopes that it needs. Jobs that were run again before are ' +
      'left out, so a repetition runs none twice. Each counts against the limit of the key: where that allows none more, done is ' +
      `false. ${inParts}`,
    body: RetryJobs,
    response: { 200: RetriedJobs, ...apiRefusals(...bodyRefusals) },
  };
  server.post(
    '/api/jobs/retry',
    { config: acceptingWork, schema: retrySchema },
    (request, reply) => {
      const hits = new RequestHits(limiter, request, reply);
      return jobs.retryMany(callerOf(request), commandOf(request.body), hits);
    },
  );
}

type Body = Static<typeof CancelJobs> | Static<typeof RetryJobs>;

function commandOf({ dry_run = false, after, ...given }: Body): ManyCommand {
  const { created_after, created_before, ...equal } = given;
  const filters: JobFilters = {
    ...equal,
    created_after:
      created_after === undefined ? undefined : requireMoment('created_after', created_after),
    created_before:
      created_before === undefined ? undefined : requireMoment('created_before', created_before),
  };
  return { filters, isDryRun: dry_run, after };
}
