/**
 * `POST /api/agents/{agentId}/trials`: a task for an agent with fields that are not saved. They are recorded
 * with the job, so that its readers see the instructions of the model.
 */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { onceGiven } from '../../adapters/http/idempotency-key.ts';
import type { Server } from '../../adapters/http/server.ts';
import { refuseLong } from '../../kernel/long-text.ts';
import type { Execution } from './execute.ts';
import { executionHeaders, executionResponses } from './execution-answer.ts';
import { NewTrial } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';
import { runRoute } from './run-route.ts';

const trialSchema = {
  tags: ['Agents'],
  security: [{ apiKey: [] }],
  operationId: 'tryAgent',
  summary: 'Try an agent with fields that are not saved',
  description:
    'Runs agent/v1.0/run-task as this agent, with the given fields instead of the saved ones. The ' +
    'agent itself is not changed. The job has the fields as agent_overrides; a retry has them too. ' +
    'A trial reads the memory of the agent and does not change it. Needs the scope agent and the scopes of a change of ' +
    'the agent.',
  params: Type.Object({ agentId: Type.String({ description: 'The id of the agent.' }) }),
  headers: Type.Object(executionHeaders),
  body: NewTrial,
  response: executionResponses,
};

export function trialRoutes(
  server: Server,
  execution: Execution,
  jobs: Jobs,
  stopping: AbortSignal,
): void {
  const route = {
    path: '/api/agents/:agentId/trials',
    schema: trialSchema,
    findTarget(request: FastifyRequest) {
      const { agentId } = request.params as { agentId: string };
      const conversationId = onceGiven(request, 'x-conversation-id');
      return execution.findTrialTarget(callerOf(request), agentId, conversationId);
    },
  };
  runRoute(server, execution, jobs, stopping, route, readTrial);
}

function readTrial(body: unknown) {
  const { agent, input } = body as Static<typeof NewTrial>;
  refuseLong('agent.instructions', agent.instructions ?? '');
  return { input, overrides: agent, inputField: 'input' };
}
