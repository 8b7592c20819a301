/** The answer to a request that runs a skill: the accepted job, or the ended one where the client waits for that. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { IdempotencyKey } from '../http/idempotency-key.ts';
import { goneSignal, waitSeconds } from '../http/prefer.ts';
import { carries } from '../http/response-headers.ts';
import { isUnavailable } from '../kernel/errors.ts';
import type { AcceptedJob } from './accept.ts';
import { jobSummary } from './job-views.ts';
import { FullJob, ListedJob } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';

/** Headers of every request that runs a skill. */
export const executionHeaders = {
  'x-user-id': Type.Optional(
    Type.String({
      description:
        "The user on whose behalf the client calls; by default the user of the conversation that it continues, else the key's client_name. 409 conflict where that conversation is another user's.",
    }),
  ),
  'idempotency-key': IdempotencyKey(
    'Repeats with the same key within 24 hours make no second job.',
  ),
  'x-conversation-id': Type.Optional(
    Type.String({
      description:
        'A conversation of the agent to continue, for skills that think: 409 conflict ' +
        'while another run of it is active.',
    }),
  ),
  prefer: Type.Optional(Type.String({ description: 'wait=N, up to 60 seconds.' })),
};

export const executionResponses = {
  200: {
    ...FullJob,
    ...carries('Location', 'Preference-Applied', 'Idempotent-Replayed'),
    description: 'The job, which ended within the wait.',
  },
  202: { ...ListedJob, ...carries('Location', 'Idempotent-Replayed') },
};

export interface AnswerDeps {
  readonly jobs: Jobs;
  /** Aborts when the platform stops: requests that wait are then answered with the accepted job. */
  readonly stopping: AbortSignal;
}

export async function answerAccepted(
  { jobs, stopping }: AnswerDeps,
  reply: FastifyReply,
  { job, isReplay }: { readonly job: AcceptedJob; readonly isReplay: boolean },
): Promise<FastifyReply> {
  reply.header('location', `/api/jobs/${job.id}`);
  if (isReplay) reply.header('idempotent-replayed', 'true');
  const seconds = waitSeconds(reply.request.headers.prefer);
  if (seconds === 0) return reply.status(202).send(jobSummary({ ...job, status: 'queued' }));
  const signal = AbortSignal.any([goneSignal(reply), stopping]);
  const organizationId = job.organization_id;
  let status: Parameters<typeof jobSummary>[0]['status'] = 'queued';
  try {
    const ended = await jobs.awaitEnd(organizationId, job.id, seconds * 1000, signal);
    if (ended !== null) {
      return reply.header('preference-applied', `wait=${seconds}`).status(200).send(ended);
    }
    ({ status } = await jobs.find(organizationId, job.id));
  } catch (error) {
    // Accepted it is all the same; told otherwise, its client would send it again.
    if (!isUnavailable(error)) throw error;
  }
  return reply.status(202).send(jobSummary({ ...job, status }));
}
