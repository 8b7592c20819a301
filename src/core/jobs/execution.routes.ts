/** `POST /api/{category}/{version}/{skill-name}` (specification: Skill execution; docs/decisions/jobs.md). */
import { type Static, Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { OnceGiven, onceGiven } from '../../adapters/http/idempotency-key.ts';
import { SkillPath } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { PlatformError } from '../../kernel/errors.ts';
import type { Execution } from './execute.ts';
import { executionHeaders, executionResponses } from './execution-answer.ts';
import type { Jobs } from './jobs.ts';
import { runRoute } from './run-route.ts';

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
): void {
  runRoute(server, execution, jobs, stopping, {
    path: '/api/:category/:version/:skillName',
    schema: executeSchema,
    findTarget(request) {
      const path = request.params as Static<typeof SkillPath>;
      // /api/jobs/x/y is a path of jobs that does not exist, not a skill.
      if (reserved.has(path.category)) throw unmatched('POST', request.url);
      return execution.findTarget(callerOf(request), path, () => ({
        agentId: onceGiven(request, 'x-agent-id'),
        conversationId: onceGiven(request, 'x-conversation-id'),
      }));
    },
  });
}
