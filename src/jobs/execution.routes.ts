/** `POST /api/{category}/{version}/{skill-name}` (specification: Skill execution; docs/decisions/jobs.md). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { acceptingWork, callerOf } from '../http/authenticate.ts';
import { IdempotencyKey, idempotencyKeyOf, onceGiven } from '../http/idempotency-key.ts';
import { goneSignal, waitSeconds } from '../http/prefer.ts';
import { apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { carries } from '../http/response-headers.ts';
import { SkillPath } from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import { userOf } from '../http/user-id.ts';
import { isUnavailable, type PlatformError } from '../kernel/errors.ts';
import type { Execute, Target } from './execute.ts';
import { jobSummary } from './job-views.ts';
import { FullJob, ListedJob } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';

type Targeted = FastifyRequest & { target: Target };

const executeSchema = {
  tags: ['Execution'],
  security: [{ apiKey: [] }],
  operationId: 'executeSkill',
  summary: 'Run a skill',
  description:
    'The body is the input of the skill. An accepted job is recorded durably before ' +
    'the response and runs to its end, also after a crash of the platform. With ' +
    'Prefer: wait=N the response waits up to N seconds for that end.',
  params: SkillPath,
  headers: Type.Object({
    'x-agent-id': Type.Optional(
      Type.String({ description: 'The agent that runs the skill.', default: 'default' }),
    ),
    'x-user-id': Type.Optional(
      Type.String({
        description: "The user on whose behalf the client calls; by default the key's client_name.",
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
  }),
  body: Type.Unknown({
    description: "The skill's input.",
    examples: [{ text: 'hello' }],
  }),
  response: {
    200: {
      ...FullJob,
      ...carries('Location', 'Preference-Applied', 'Idempotent-Replayed'),
      description: 'The job, which ended within the wait.',
    },
    202: { ...ListedJob, ...carries('Location', 'Idempotent-Replayed') },
    ...apiRefusals(
      'skill_not_found',
      'not_found',
      'insufficient_scope',
      ...bodyRefusals,
      'conflict',
      'agent_paused',
      'idempotency_key_reused',
    ),
  },
};

export interface ExecutionRoutesDeps {
  readonly execute: Execute;
  readonly jobs: Jobs;
  /** Words that are no category but paths of the platform's own. */
  readonly reserved: ReadonlySet<string>;
  unmatched(method: string, url: string): PlatformError;
  /** Aborts when the platform stops: requests that wait are then answered with the accepted job. */
  readonly stopping: AbortSignal;
}

export function executionRoutes(server: Server, deps: ExecutionRoutesDeps) {
  const { execute, jobs, stopping } = deps;
  server.decorateRequest('target', null);
  const options = {
    config: acceptingWork,
    onRequest: findTarget(deps),
    // The skill's own schema validates the body, after all other checks.
    validatorCompiler: () => () => true,
    schema: executeSchema,
  };
  server.post('/api/:category/:version/:skillName', options, async (request, reply) => {
    const caller = callerOf(request);
    const key = idempotencyKeyOf(request);
    const { job, isReplay } = await execute.run(
      caller,
      (request as unknown as Targeted).target,
      request.body,
      {
        userId: userOf(request) ?? caller.clientName,
        triggerType: 'api',
        idempotency: key === undefined ? undefined : { owner: caller.keyId, key },
      },
    );
    reply.header('location', `/api/jobs/${job.id}`);
    if (isReplay) reply.header('idempotent-replayed', 'true');
    const seconds = waitSeconds(request.headers.prefer);
    if (seconds === 0) return reply.status(202).send(jobSummary({ ...job, status: 'queued' }));
    const signal = AbortSignal.any([goneSignal(reply), stopping]);
    const { organizationId } = caller;
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
  });
}

/** A hook: skill, agent and scope are checked before the body is read (docs/decisions/order-of-checks.md). */
function findTarget({ execute, reserved, unmatched }: ExecutionRoutesDeps) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const path = request.params as Static<typeof SkillPath>;
    try {
      // /api/jobs/x/y is a path of jobs that does not exist, not a skill.
      if (reserved.has(path.category)) throw unmatched('POST', request.url);
      const target = execute.target(callerOf(request), path, () => ({
        agentId: onceGiven(request, 'x-agent-id'),
        conversationId: onceGiven(request, 'x-conversation-id'),
      }));
      if (target instanceof Promise) {
        target.then((found) => {
          (request as Targeted).target = found;
          done();
        }, done);
        return;
      }
      (request as Targeted).target = target;
      done();
    } catch (error) {
      done(error as Error);
    }
  };
}
