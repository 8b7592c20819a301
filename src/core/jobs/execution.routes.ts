/** `POST /api/{category}/{version}/{skill-name}` (specification: Skill execution; docs/decisions/jobs.md). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import { OnceGiven, onceGiven } from '../../adapters/http/idempotency-key.ts';
import { SkillPath } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { PlatformError } from '../../kernel/errors.ts';
import type { Execution, Target } from './execute.ts';
import {
  answerAccepted,
  executionHeaders,
  executionOptions,
  executionResponses,
} from './execution-answer.ts';
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
    'x-agent-id': OnceGiven('The agent that runs the skill.', { default: 'default' }),
    ...executionHeaders,
  }),
  body: Type.Unknown({
    description: "The skill's input.",
    examples: [{ text: 'hello' }],
  }),
  response: executionResponses,
};

/** The refusal of a request that no route matches. */
type Unmatched = (method: string, url: string) => PlatformError;

/** `reserved` are words that are no category but paths of the platform's own. */
export function executionRoutes(
  server: Server,
  execution: Execution,
  jobs: Jobs,
  stopping: AbortSignal,
  reserved: ReadonlySet<string>,
  unmatched: Unmatched,
) {
  server.decorateRequest('target', null);
  const options = {
    config: acceptingWork,
    onRequest: findTarget(execution, reserved, unmatched),
    // The skill's own schema validates the body, after all other checks.
    validatorCompiler: () => () => true,
    schema: executeSchema,
  };
  server.post('/api/:category/:version/:skillName', options, async (request, reply) => {
    const caller = callerOf(request);
    const { target } = request as unknown as Targeted;
    const given = executionOptions(request, caller);
    const accepted = await execution.execute(caller, target, request.body, given);
    return answerAccepted(jobs, stopping, reply, accepted);
  });
}

/** A hook: skill, agent and scope are checked before the body is read (docs/decisions/order-of-checks.md). */
function findTarget(execution: Execution, reserved: ReadonlySet<string>, unmatched: Unmatched) {
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const path = request.params as Static<typeof SkillPath>;
    try {
      // /api/jobs/x/y is a path of jobs that does not exist, not a skill.
      if (reserved.has(path.category)) throw unmatched('POST', request.url);
      const target = execution.findTarget(callerOf(request), path, () => ({
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
