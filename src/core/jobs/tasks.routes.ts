/** `POST /api/agents/{agentId}/tasks`: a task for an agent, which is a run of `agent/v1.0/run-task`. */
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { onceGiven } from '../../adapters/http/idempotency-key.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { Execution } from './execute.ts';
import { executionHeaders, executionResponses } from './execution-answer.ts';
import { NewTask } from './jobs.schemas.ts';
import type { Jobs } from './jobs.ts';
import { runRoute } from './run-route.ts';

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
  runRoute(server, execution, jobs, stopping, {
    path: '/api/agents/:agentId/tasks',
    schema: taskSchema,
    findTarget(request) {
      const { agentId } = request.params as { agentId: string };
      const conversationId = onceGiven(request, 'x-conversation-id');
      return execution.findTaskTarget(callerOf(request), agentId, conversationId);
    },
  });
}
