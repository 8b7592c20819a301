/** `GET /api/jobs/:jobId/steps/:step/prompt`: what a call of a model was sent. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../../adapters/http/authenticate.ts';
import { apiRefusals } from '../../../adapters/http/refusals.ts';
import { Id, Words } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { requireUsersScope } from '../../../adapters/http/users-scope.ts';
import type { Jobs } from '../jobs.ts';
import { StepPrompt } from './prompts.schemas.ts';

const schema = {
  tags: ['Jobs'],
  security: [{ apiKey: [] }],
  operationId: 'getStepPrompt',
  summary: 'Get what a call of a model was sent',
  description:
    "The body as the provider got it, without credentials and with the ids of files in place of their bytes, where it is kept: with KEEP_PROMPTS or the organization's own setting, and keep_prompts of the agent. " +
    'It has messages, memories and profiles of users, and results of tools. Needs the scope memories or user-data.',
  params: Type.Object({
    jobId: { ...Id, description: 'The id of the job.' },
    step: Type.String({ description: 'The number of the step.' }),
  }),
  querystring: Type.Object({
    as: Type.Optional({
      ...Words(['whole', 'difference']),
      description: 'difference: what differs from the prompt before in the same dialogue.',
    }),
  }),
  response: {
    200: StepPrompt,
    ...apiRefusals('not_found', 'validation_error', 'insufficient_scope'),
  },
};

export function promptRoutes(server: Server, jobs: Jobs) {
  /** An unknown job is 404 before any other check (docs/decisions/order-of-checks.md). */
  const onRequest = async (request: FastifyRequest) => {
    const { jobId } = request.params as { jobId: string };
    await jobs.find(callerOf(request).organizationId, jobId);
    requireUsersScope(request);
  };
  server.get('/api/jobs/:jobId/steps/:step/prompt', { onRequest, schema }, ({ params, query }) =>
    jobs.prompt(params.jobId, stepOf(params.step), query.as ?? 'whole'),
  );
}

/** The number of a step; 0, which none has, for another text. */
function stepOf(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
}
