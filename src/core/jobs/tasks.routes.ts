/** `POST /api/agents/{agentId}/tasks`: a task for an agent, which is a run of `agent/v1.0/run-task`. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import { onceGiven } from '../../adapters/http/idempotency-key.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { Execution, Target } from './execute.ts';
import {
  answerAccepted,
  executionHeaders,
  executionOptions,
  executionResponses,
} from './execution-answer.ts';
import { NewTask } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';

const taskSchema = {
  tags: ['Agents'],
  security: [{ apiKey: [] }],
  operationId: 'giveTask',
  summary: 'Give an agent a task',
  description:
    'Runs agent/v1.0/run-task as this agent: the same as POST /api/agent/v1.0/run-task with x-agent-id. Needs the scope agent.',
  params: Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) }),
  headers: Type.Object(executionHeaders),
  body: NewTask,
  response: executionResponses,
};

export function taskRoutes(
  server: Server,
  execution: Execution,
  jobs: Jobs,
  stopping: AbortSignal,
): void {
  const targets = new WeakMap<FastifyRequest, Target>();
  const findTarget = async (request: FastifyRequest) => {
    const { agentId } = request.params as { agentId: string };
    const conversationId = onceGiven(request, 'x-conversation-id');
    const caller = callerOf(request);
    targets.set(request, await execution.findTaskTarget(caller, agentId, conversationId));
  };
  const options = {
    config: acceptingWork,
    onRequest: findTarget,
    // The skill's own schema validates the body, after all other checks.
    validatorCompiler: () => () => true,
    schema: taskSchema,
  };
  server.post('/api/agents/:agentId/tasks', options, async (request, reply) => {
    const caller = callerOf(request);
    const target = targets.get(request as unknown as FastifyRequest) as Target;
    const given = executionOptions(request as unknown as FastifyRequest, caller);
    const accepted = await execution.execute(caller, target, request.body, given);
    return answerAccepted(jobs, stopping, reply, accepted);
  });
}
