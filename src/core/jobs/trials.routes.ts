/**
 * `POST /api/agents/{agentId}/trials`: a task for an agent with fields that are not saved. They are recorded
 * with the job, so that its readers see the instructions of the model.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { acceptingWork, callerOf } from '../../adapters/http/authenticate.ts';
import { onceGiven } from '../../adapters/http/idempotency-key.ts';
import type { Server } from '../../adapters/http/server.ts';
import { refuseLong } from '../../kernel/long-text.ts';
import type { Execution, Target } from './execute.ts';
import {
  answerAccepted,
  executionHeaders,
  executionOptions,
  executionResponses,
} from './execution-answer.ts';
import { NewTrial } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';

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
) {
  const targets = new WeakMap<FastifyRequest, Target>();
  const findTarget = async (request: FastifyRequest) => {
    const { agentId } = request.params as { agentId: string };
    const conversationId = onceGiven(request, 'x-conversation-id');
    const caller = callerOf(request);
    targets.set(request, await execution.findTrialTarget(caller, agentId, conversationId));
  };
  const options = { config: acceptingWork, onRequest: findTarget, schema: trialSchema };
  server.post('/api/agents/:agentId/trials', options, async (request, reply) => {
    const caller = callerOf(request);
    const { agent, input } = request.body;
    refuseLong('agent.instructions', agent.instructions ?? '');
    const target = targets.get(request as unknown as FastifyRequest) as Target;
    const given = { ...executionOptions(request, caller), overrides: agent, inputField: 'input' };
    const accepted = await execution.execute(caller, target, input, given);
    return answerAccepted(jobs, stopping, reply, accepted);
  });
}
