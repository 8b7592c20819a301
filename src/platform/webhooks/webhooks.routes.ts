/** `/api/agent-webhooks` (specification: Webhooks; docs/decisions/webhooks.md). */
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import { Nothing } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import {
  CreatedWebhook,
  NewWebhook,
  Webhook,
  WebhookChanges,
  webhookExample,
} from './webhooks.schemas.ts';
import type { Webhooks } from './webhooks.ts';

const path = '/api/agent-webhooks';
const operation = { tags: ['Webhooks'], security: [{ apiKey: [] }] };
const params = Type.Object({ webhookId: Type.String({ description: 'The id of the webhook.' }) });

const createSchema = {
  ...operation,
  operationId: 'createAgentWebhook',
  summary: 'Create a webhook',
  description:
    'Delivers later events of these types to the url, signed with the secret, which ' +
    'only this response shows. With agent_id "*" those of all agents of the organization. Events of approvals need the ' +
    'scope approvals.',
  body: NewWebhook,
  response: {
    201: { ...CreatedWebhook, ...carries('Location') },
    ...apiRefusals('not_found', 'insufficient_scope', 'conflict', ...bodyRefusals),
  },
};
const listSchema = {
  ...operation,
  operationId: 'listAgentWebhooks',
  summary: 'List all webhooks, newest first',
  response: {
    200: {
      ...Type.Array(Webhook, {
        description: "The organization's webhooks, without their secrets.",
        examples: [[webhookExample]],
      }),
      ...carries('X-Total-Count'),
    },
    ...apiRefusals(),
  },
};
const getSchema = {
  ...operation,
  operationId: 'getAgentWebhook',
  summary: 'Get a webhook',
  params,
  response: { 200: Webhook, ...apiRefusals('not_found') },
};
const updateSchema = {
  ...operation,
  operationId: 'updateAgentWebhook',
  summary: 'Change a webhook, deactivate or reactivate it',
  description:
    'Changes the given fields. A new url or secret applies from the next attempt ' +
    'on. Deactivating cancels pending deliveries. Where it has events of approvals before or after the change, ' +
    'all but deactivating it needs the scope approvals.',
  params,
  body: WebhookChanges,
  response: { 200: Webhook, ...apiRefusals('not_found', 'insufficient_scope', ...bodyRefusals) },
};
const deleteSchema = {
  ...operation,
  operationId: 'deleteAgentWebhook',
  summary: 'Delete a webhook and its deliveries',
  params,
  response: { 204: Nothing, ...apiRefusals('not_found') },
};

export function webhookRoutes(server: Server, webhooks: Webhooks) {
  createRoute(server, webhooks);
  listRoute(server, webhooks);
  getRoute(server, webhooks);
  updateRoute(server, webhooks);
  deleteRoute(server, webhooks);
}

function createRoute(server: Server, webhooks: Webhooks) {
  server.post(path, { schema: createSchema }, async (request, reply) => {
    const created = await webhooks.create(callerOf(request), request.body);
    return reply.status(201).header('location', `${path}/${created.id}`).send(created);
  });
}

function listRoute(server: Server, webhooks: Webhooks) {
  server.get(path, { schema: listSchema }, async (request, reply) => {
    const list = await webhooks.list(callerOf(request).organizationId);
    return reply.header('x-total-count', list.length).send(list);
  });
}

function getRoute(server: Server, webhooks: Webhooks) {
  const options = { errorHandler: unknownFirst(requireWebhook(webhooks)), schema: getSchema };
  server.get(`${path}/:webhookId`, options, (request) =>
    webhooks.get(callerOf(request).organizationId, request.params.webhookId),
  );
}

function updateRoute(server: Server, webhooks: Webhooks) {
  const options = {
    onRequest: requireWebhook(webhooks),
    // A body may be all that needs no scope, so it is read before; but a fault of it is not shown first.
    errorHandler: unknownFirst(admitReader(webhooks)),
    schema: updateSchema,
  };
  server.put(`${path}/:webhookId`, options, (request) =>
    webhooks.update(callerOf(request), request.params.webhookId, request.body),
  );
}

function deleteRoute(server: Server, webhooks: Webhooks) {
  const options = { onRequest: requireWebhook(webhooks), schema: deleteSchema };
  server.delete(`${path}/:webhookId`, options, async (request, reply) => {
    await webhooks.remove(callerOf(request).organizationId, request.params.webhookId);
    return reply.status(204).send(null);
  });
}

/** A hook: `404` for an unknown webhook, and `403` for a key that may not read what its events are about. */
export function admitReader(webhooks: Webhooks) {
  return lookUp('webhookId', (id, caller) => webhooks.admitReader(caller, id));
}

/** A hook: an unknown webhook is 404 before any other check (docs/decisions/order-of-checks.md). */
export function requireWebhook(webhooks: Webhooks) {
  return lookUp('webhookId', (id, { organizationId }) => webhooks.find(organizationId, id));
}
