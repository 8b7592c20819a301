/** `/api/approvals` (docs/decisions/runs-that-wait.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf, sessionIdOf } from '../../adapters/http/authenticate.ts';
import { allowNoBody } from '../../adapters/http/optional-body.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries, setNextOffset } from '../../adapters/http/response-headers.ts';
import { Id, Paged } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireScopes } from '../../kernel/caller.ts';
import type { Json } from '../../kernel/json.ts';
import { Approval, ApprovalQuery, ApprovingBody, DecisionBody } from './approvals.schemas.ts';
import type { Approvals, Decider, Decision } from './approvals.ts';

const operation = { tags: ['Approvals'], security: [{ apiKey: [] }] };
const all = '/api/approvals';
const one = `${all}/:approvalId` as const;
const params = Type.Object({ approvalId: { ...Id, description: 'The id of the approval.' } });

const listSchema = {
  ...operation,
  operationId: 'listApprovals',
  summary: 'List approvals, newest first',
  description: 'Questions of runs to a person. The key needs the scope approvals.',
  querystring: ApprovalQuery,
  response: {
    200: { ...Paged(Approval, 'A page of approvals.'), ...carries('X-Next-Offset') },
    ...apiRefusals('insufficient_scope'),
  },
};
const getSchema = {
  ...operation,
  operationId: 'getApproval',
  summary: 'Get an approval',
  params,
  response: { 200: Approval, ...apiRefusals('insufficient_scope', 'not_found') },
};
const deciding = {
  params,
  body: DecisionBody,
  response: {
    200: Approval,
    ...apiRefusals('insufficient_scope', 'not_found', 'conflict', ...bodyRefusals),
  },
};
const approveSchema = {
  ...operation,
  ...deciding,
  body: ApprovingBody,
  operationId: 'approveApproval',
  summary: 'Approve: the run that waits goes on',
  description:
    'The first decision counts; a second one is 409 conflict. An answer that does not fit the fields is ' +
    '400, and the approval stays pending.',
};
const rejectSchema = {
  ...operation,
  ...deciding,
  operationId: 'rejectApproval',
  summary: 'Reject: the run that waits is told so, with the reason',
  description: 'The first decision counts; a second one is 409 conflict.',
};

/** An unknown approval is 404, and a key without the scope 403, before the body is read. */
export function approvalRoutes(server: Server, { approvals }: { approvals: Approvals }): void {
  const find = async (request: FastifyRequest) => {
    const { approvalId } = request.params as { approvalId: string };
    await approvals.find(callerOf(request).organizationId, approvalId);
    admit(request);
  };
  server.get(all, { onRequest: admitNext, schema: listSchema }, async (request, reply) => {
    const { limit, offset, ...filters } = request.query;
    const page = { limit, offset };
    const { organizationId } = callerOf(request);
    const { next, ...found } = await approvals.list(organizationId, filters, page);
    setNextOffset(reply, next);
    return { ...found, ...page };
  });
  server.get(one, { onRequest: find, schema: getSchema }, (request) =>
    approvals.get(callerOf(request).organizationId, request.params.approvalId),
  );
  const decide = (request: FastifyRequest, id: string, status: Decision['status']) => {
    const { reason = null, answer } = request.body as { reason?: string; answer?: Json };
    const decision = { status, by: deciderOf(request), reason, answer };
    return approvals.decide(callerOf(request).organizationId, id, decision);
  };
  const options = { onRequest: find, preValidation: allowNoBody };
  server.post(`${one}/approve`, { ...options, schema: approveSchema }, (request) =>
    decide(request, request.params.approvalId, 'approved'),
  );
  server.post(`${one}/reject`, { ...options, schema: rejectSchema }, (request) =>
    decide(request, request.params.approvalId, 'rejected'),
  );
}

function admit(request: FastifyRequest): void {
  requireScopes(callerOf(request).scopes, ['approvals']);
}

async function admitNext(request: FastifyRequest): Promise<void> {
  admit(request);
}

function deciderOf(request: FastifyRequest): Decider {
  const sessionId = sessionIdOf(request);
  const { keyId } = callerOf(request);
  return sessionId === null
    ? { kind: 'api_key', id: keyId }
    : { kind: 'console', id: sessionId, apiKeyId: keyId };
}
