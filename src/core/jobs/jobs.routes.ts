/** `/api/jobs` (docs/decisions/jobs.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import { eventStream, LastEventId, sendEvents } from '../../adapters/http/event-stream.ts';
import {
  IdempotencyKey,
  idempotencyKeyOf,
  OnceGiven,
} from '../../adapters/http/idempotency-key.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { allowNoBody } from '../../adapters/http/optional-body.ts';
import { goneOrStopping, Prefer, waitSeconds } from '../../adapters/http/prefer.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import { FilterText, Id, Moment, Page, Paged, Words } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { StreamAdmission } from '../../adapters/http/streams.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import { userOf } from '../../adapters/http/user-id.ts';
import { hasScopes } from '../../kernel/caller.ts';
import { invalid } from '../../kernel/errors.ts';
import { endingN, type JobEvent, type Position } from './feed.ts';
import { JobEventSchema, type JobEventType } from './job-events.schemas.ts';
import { jobFilters } from './job-filters.schemas.ts';
import {
  boundedTotalMax,
  walkedMaxOfKey,
  walkedMaxOfSqlite,
  walkedMaxOfUser,
} from './job-lists.store.ts';
import { JobStep, StepStatus } from './job-steps.schemas.ts';
import { jobSummary } from './job-views.ts';
import {
  activeJob,
  cancelledJob,
  FullJob,
  JobChanges,
  JobListItem,
  JobStatus,
  ListedJob,
} from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';

const operation = { tags: ['Jobs'], security: [{ apiKey: [] }] };
const params = Type.Object({ jobId: { ...Id, description: 'The id of the job.' } });

const listSchema = {
  ...operation,
  operationId: 'listJobs',
  summary: 'List jobs, newest first',
  description:
    'Where `created_after` or `created_before` leaves out any job of the organization, `total` ' +
    `is at most ${boundedTotalMax}, and the list ends there. In the embedded database further ` +
    `filters then look at the newest ${walkedMaxOfSqlite} jobs between the two, but for \`conversation_id\`, ` +
    '`parent_job_id` and the statuses active, failed and cancelled, which are found wherever they are.',
  querystring: Type.Object({
    status: Type.Optional({ ...JobStatus, description: 'Jobs of this status.' }),
    ...jobFilters,
    user_id: Type.Optional(
      FilterText(
        `The newest ${walkedMaxOfUser} jobs for this user, whom x-user-id named; with \`status\` queued, active or waiting, all of them.`,
      ),
    ),
    api_key_id: Type.Optional({
      ...Id,
      description: `Jobs that were accepted with this API key, among the organization's newest ${walkedMaxOfKey}; with \`status\` queued or active, all of them.`,
    }),
    created_after: Type.Optional(
      Moment('Jobs accepted later than that; not those of that very moment.'),
    ),
    created_before: Type.Optional(
      Moment('Jobs accepted earlier than that; not those of that very moment.'),
    ),
    include: Type.Optional({
      ...Words(['timing']),
      description: 'timing: adds timestamps, duration and error of each job.',
    }),
    ...Page.properties,
  }),
  response: {
    200: Paged(JobListItem, 'A page of jobs.'),
    ...apiRefusals(),
  },
};
const getSchema = {
  ...operation,
  operationId: 'getJob',
  summary: 'Get a job',
  description: 'With Prefer: wait=N the response waits up to N seconds for the end of the job.',
  params,
  querystring: Type.Object({
    include: Type.Optional({
      ...Words(['origin']),
      description: 'origin: adds the schedule or trigger that started it.',
    }),
  }),
  headers: Type.Object({ prefer: Prefer }),
  response: {
    200: { ...FullJob, ...carries('Preference-Applied') },
    ...apiRefusals('not_found'),
  },
};
const cancelSchema = {
  ...operation,
  operationId: 'cancelJob',
  summary: 'Cancel a job',
  description:
    'A queued job ends at once. An active one is asked to stop, and its process is ' +
    'killed if it does not.',
  params,
  response: {
    200: { ...FullJob, description: 'The job is cancelled.', examples: [cancelledJob] },
    202: { ...FullJob, description: 'The job is being stopped.', examples: [activeJob] },
    ...apiRefusals('not_found', 'job_not_cancellable'),
  },
};
const RetryOptions = Type.Object(
  {
    resume: Type.Optional(
      Type.Boolean({ description: 'Whether it goes on from what the job has recorded.' }),
    ),
  },
  {
    additionalProperties: false,
    title: 'JobRetry',
    description: 'Where a retry begins.',
    examples: [{ resume: true }],
  },
);
const retrySchema = {
  ...operation,
  operationId: 'retryJob',
  summary: 'Run a failed or cancelled job again',
  description:
    'With resume the new job goes on in the same conversation from what the old one has recorded: finished turns, tools, ' +
    'steps and waits are not repeated and not charged again. Without it, or without a body, the input runs again from the beginning. ' +
    'A job is resumed once, and only while its conversation has not gone on. ' +
    'Needs the scopes of the skill. With API_KEY_PERMISSIONS=strict the retry of a job that continued a conversation ' +
    'needs the scope conversations too, and that of one whose task names files the scope files. ' +
    '409 conflict where x-user-id is not the user of the job, and while another run of its conversation has not ended.',
  params,
  headers: Type.Object({
    'x-user-id': OnceGiven(
      'The user on whose behalf the client calls. A job that was for no user runs again for this one.',
    ),
    'idempotency-key': IdempotencyKey(
      'Repeats with the same key within 24 hours make no second job.',
    ),
  }),
  body: RetryOptions,
  response: {
    202: {
      ...ListedJob,
      ...carries('Location', 'Idempotent-Replayed'),
      description: 'The new job; its retry_of names the old one.',
    },
    ...apiRefusals(
      'not_found',
      'skill_not_found',
      'insufficient_scope',
      'conflict',
      'job_not_retryable',
      'agent_paused',
      'idempotency_key_reused',
      ...bodyRefusals,
    ),
  },
};
const changeSchema = {
  ...operation,
  operationId: 'updateJob',
  summary: 'Change when a queued job may begin, or its priority',
  description: 'Needs the scopes of the skill. A job that is not queued is 409 conflict.',
  params,
  body: JobChanges,
  response: {
    200: FullJob,
    ...apiRefusals('not_found', 'insufficient_scope', 'conflict', ...bodyRefusals),
  },
};
const StepsQuery = Type.Object({
  ...Page.properties,
  status: Type.Optional({ ...StepStatus, description: 'Steps of this status.' }),
});
const stepsSchema = {
  ...operation,
  operationId: 'listJobSteps',
  summary:
    'List the steps of a job: calls of models, their tools, called skills, named steps, waits',
  description:
    'Calls of models, their tools, skills that its skill called, named steps and waits, in order, ' +
    'during the run and afterwards. status=waiting lists what the job waits for. Approvals are among them for keys with the scope ' +
    'approvals.',
  params,
  querystring: StepsQuery,
  response: {
    200: Paged(JobStep, 'Steps, in order.'),
    ...apiRefusals('not_found', 'validation_error'),
  },
};
const streamSchema = {
  ...operation,
  operationId: 'streamJobEvents',
  summary: 'Follow a job as server-sent events',
  description:
    'Events: status, log, progress, message, and for a job that thinks token (a ' +
    "piece of the model's text), tool_call and tool_result, each with the number of " +
    'its step. The stream ends with the job, and when its key is revoked or ' +
    'expires. A client that reconnects with Last-Event-ID resumes after that event. ' +
    'With follow=false it ends after the events that are recorded so far. The event approval needs the scope approvals. ' +
    'With API_KEY_PERMISSIONS=strict message, token, tool_call and tool_result need the scope conversations. 503 if the key or the address has too many open streams.',
  params,
  querystring: Type.Object({
    follow: Type.Optional({
      ...Words(['true', 'false']),
      description: 'false: the events that are recorded so far, without those to come.',
    }),
  }),
  headers: LastEventId,
  response: {
    200: eventStream(JobEventSchema, 'The events, until the job has ended.'),
    ...apiRefusals('not_found'),
  },
};

type FoundJob = Awaited<ReturnType<Jobs['get']>>;

/** The scheduled job and the trigger that started a job; null for another origin, or one that is deleted. */
type OriginOf = (
  organizationId: string,
  job: Pick<FoundJob, 'job_id' | 'trigger_type'>,
) => Promise<{ scheduled_job_id: string | null; trigger_id: string | null }>;

/** `isStrict`: `API_KEY_PERMISSIONS=strict`. */
export function jobRoutes(
  server: Server,
  jobs: Jobs,
  originOf: OriginOf,
  streams: StreamAdmission,
  isStrict: boolean,
) {
  /** An unknown job is 404 before any other check (docs/decisions/order-of-checks.md). */
  const onRequest = lookUp('jobId', (id, { organizationId }) => jobs.find(organizationId, id));
  server.get('/api/jobs', { schema: listSchema }, async (request) => {
    const { limit, offset, include, ...filters } = request.query;
    const page = { limit, offset };
    const { organizationId } = callerOf(request);
    const { jobs: data, total } = include
      ? await jobs.listTimed(organizationId, filters, page)
      : await jobs.list(organizationId, filters, page);
    return { data, total, ...page };
  });
  getRoute(server, jobs, originOf, streams.stopping, unknownFirst(onRequest));
  const cancelOptions = { onRequest, schema: cancelSchema };
  server.post('/api/jobs/:jobId/cancel', cancelOptions, async (request, reply) => {
    const job = await jobs.cancel(callerOf(request).organizationId, request.params.jobId);
    return reply.status(job.status === 'cancelled' ? 200 : 202).send(job);
  });
  const body = { preValidation: allowNoBody, schema: retrySchema };
  const retryOptions = { config: acceptingWork, onRequest, ...body };
  server.post('/api/jobs/:jobId/retry', retryOptions, async (request, reply) => {
    const { resume = false } = request.body;
    const caller = callerOf(request);
    const key = idempotencyKeyOf(request);
    const { jobId } = request.params;
    const { job, isReplay } = await jobs.retry(caller, jobId, resume, userOf(request), key);
    reply.status(202).header('location', `/api/jobs/${job.id}`);
    if (isReplay) reply.header('idempotent-replayed', 'true');
    return jobSummary(job, 'queued');
  });
  changeRoute(server, jobs);
  const stepsOptions = { onRequest, schema: stepsSchema };
  server.get('/api/jobs/:jobId/steps', stepsOptions, async (request) => {
    const { params, query } = request;
    const showsApprovals = readsApprovals(request);
    const { steps, total } = await jobs.steps(params.jobId, { ...query, showsApprovals });
    const { limit, offset } = query;
    return { data: steps, total, limit, offset };
  });
  // A HEAD would hold the stream open for nothing.
  const streamOptions = { exposeHeadRoute: false, onRequest, schema: streamSchema };
  server.get('/api/jobs/:jobId/events', streamOptions, async (request, reply) => {
    const { organizationId } = callerOf(request);
    const after = positionOf(request.headers['last-event-id']);
    const signal = streams.begin(request, reply);
    const range = { after, isFollowed: request.query.follow !== 'false' };
    const events = jobs.events(organizationId, request.params.jobId, range, signal);
    await sendEvents(reply, asServerSent(events, hiddenEvents(request, isStrict)));
  });
}

function changeRoute(server: Server, jobs: Jobs) {
  const onRequest = lookUp('jobId', (id, caller) => jobs.requireChangeable(caller, id));
  server.patch('/api/jobs/:jobId', { onRequest, schema: changeSchema }, (request) => {
    const { jobId } = request.params;
    return jobs.change(callerOf(request).organizationId, jobId, request.body);
  });
}

function getRoute(
  server: Server,
  jobs: Jobs,
  originOf: OriginOf,
  stopping: AbortSignal,
  errorHandler: ReturnType<typeof unknownFirst>,
) {
  const options = { errorHandler, schema: getSchema };
  server.get('/api/jobs/:jobId', options, async (request, reply) => {
    const { organizationId } = callerOf(request);
    const { jobId } = request.params;
    const seconds = waitSeconds(request.headers.prefer);
    let ended: FoundJob | null = null;
    if (seconds > 0) {
      const signal = goneOrStopping(reply, stopping);
      ended = await jobs.awaitEnd(organizationId, jobId, seconds * 1000, signal);
      if (ended !== null) reply.header('preference-applied', `wait=${seconds}`);
    }
    const job = ended ?? (await jobs.get(organizationId, jobId));
    return request.query.include ? { ...job, ...(await originOf(organizationId, job)) } : job;
  });
}

/** Whether the caller may read approvals: without their scope jobs do not show them. */
function readsApprovals(request: FastifyRequest): boolean {
  return hasScopes(callerOf(request).scopes, ['approvals']);
}

/** The events that show what the conversation of the job has. */
const dialogueEvents = ['message', 'token', 'tool_call', 'tool_result'] as const;

/** The events of a job that the caller may not read. */
function hiddenEvents(request: FastifyRequest, isStrict: boolean): ReadonlySet<JobEventType> {
  const hidden = new Set<JobEventType>();
  if (!readsApprovals(request)) hidden.add('approval');
  if (isStrict && !hasScopes(callerOf(request).scopes, ['conversations'])) {
    for (const type of dialogueEvents) hidden.add(type);
  }
  return hidden;
}

/** An event's id is its position, so that any process can resume the stream. */
async function* asServerSent(events: AsyncIterable<JobEvent>, hidden: ReadonlySet<JobEventType>) {
  for await (const { epoch, n, type, data } of events) {
    if (!hidden.has(type)) yield { id: `${epoch}.${n}`, event: type, data };
  }
}

function positionOf(id: string | undefined): Position | null {
  if (id === undefined || id === '') return null;
  const match = /^(\d{1,9})\.(\d{1,10})$/.exec(id);
  if (match === null || Number(match[2]) > endingN)
    throw invalid('last-event-id', 'must be the id of an event of this stream');
  return { epoch: Number(match[1]), n: Number(match[2]) };
}
