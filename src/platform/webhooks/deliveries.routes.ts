/** Deliveries of a webhook and of a job (docs/decisions/webhooks.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { Id, Page, Paged } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import type { Deliveries } from './deliveries.ts';
import { countedMax } from './delivery-log.store.ts';
import { requireReadable, typesByScopes } from './readable-events.ts';
import { admitReader, requireWebhook } from './webhooks.routes.ts';
import { Delivery, DeliveryWithBody, JobDelivery } from './webhooks.schemas.ts';
import type { Webhooks } from './webhooks.ts';

const webhookPath = '/api/agent-webhooks/:webhookId';
const operation = { tags: ['Webhooks'], security: [{ apiKey: [] }] };
const webhookId = Type.String({ description: 'The id of the webhook.' });
const webhookParams = Type.Object({ webhookId });
const deliveryParams = Type.Object({
  webhookId,
  deliveryId: Type.String({ description: 'The id of the delivery.' }),
});

const listSchema = {
  ...operation,
  operationId: 'listAgentWebhookDeliveries',
  summary: 'List the deliveries of a webhook, newest first',
  description:
    'Those of a webhook with events of approvals need the scope approvals. Without it, those of approvals from before a ' +
    `change of its events are left out, and \`total\` is at most ${countedMax}.`,
  params: webhookParams,
  querystring: Page,
  response: {
    200: Paged(Delivery, 'A page of deliveries, each with its attempts.'),
    ...apiRefusals('not_found', 'insufficient_scope'),
  },
};
const getSchema = {
  ...operation,
  operationId: 'getAgentWebhookDelivery',
  summary: 'Get a delivery of a webhook with its body',
  description: 'That of an event of an approval needs the scope approvals.',
  params: deliveryParams,
  response: { 200: DeliveryWithBody, ...apiRefusals('not_found', 'insufficient_scope') },
};
const listOfJobSchema = {
  ...operation,
  operationId: 'listJobDeliveries',
  summary: 'List the deliveries of a job, newest first',
  description:
    "Deliveries of the job's events and of its conversation.created, to all webhooks. Those of approvals need the scope " +
    'approvals, and are left out without it.',
  params: Type.Object({ jobId: { ...Id, description: 'The id of the job.' } }),
  querystring: Page,
  response: {
    200: Paged(JobDelivery, 'A page of deliveries, each with its attempts.'),
    ...apiRefusals('not_found'),
  },
};
const redeliverSchema = {
  ...operation,
  operationId: 'redeliverAgentWebhookDelivery',
  summary: 'Deliver an event again',
  description:
    'Sends the same body again, as a new delivery with retries of its own. That of an approval needs the scope approvals.',
  params: deliveryParams,
  response: { 202: Delivery, ...apiRefusals('not_found', 'insufficient_scope', 'conflict') },
};
const testSchema = {
  ...operation,
  operationId: 'testAgentWebhook',
  summary: 'Deliver a sample event',
  description:
    'A sample of the first event type that the webhook is subscribed to, with `data.test` ' +
    'true. It never counts as a failed delivery.',
  params: webhookParams,
  response: { 202: Delivery, ...apiRefusals('not_found', 'conflict') },
};

interface DeliverySlices {
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
  /** Whether keys need the scopes of `API_KEY_PERMISSIONS=strict`. */
  readonly isStrict: boolean;
}

export function deliveryRoutes(server: Server, slices: DeliverySlices) {
  listRoute(server, slices);
  getRoute(server, slices);
  listOfJobRoute(server, slices);
  redeliverRoute(server, slices);
  testRoute(server, slices);
}

function listRoute(server: Server, { webhooks, deliveries, isStrict }: DeliverySlices) {
  const options = { onRequest: admitReader(webhooks), schema: listSchema };
  server.get(`${webhookPath}/deliveries`, options, async (request) => {
    const { params, query: page } = request;
    const { organizationId, scopes } = callerOf(request);
    const { hidden } = typesByScopes(scopes, isStrict);
    return { ...(await deliveries.list(organizationId, params.webhookId, hidden, page)), ...page };
  });
}

function getRoute(server: Server, slices: DeliverySlices) {
  const options = { onRequest: requireDelivery(slices), schema: getSchema };
  server.get(`${webhookPath}/deliveries/:deliveryId`, options, (request) =>
    slices.deliveries.get(request.params.webhookId, request.params.deliveryId),
  );
}

function listOfJobRoute(server: Server, { deliveries, isStrict }: DeliverySlices) {
  const requireJob = lookUp('jobId', (id, { organizationId }) =>
    deliveries.jobs.find(organizationId, id),
  );
  const options = { errorHandler: unknownFirst(requireJob), schema: listOfJobSchema };
  server.get('/api/jobs/:jobId/deliveries', options, async (request) => {
    const { params, query: page } = request;
    const { organizationId, scopes } = callerOf(request);
    const job = await deliveries.jobs.find(organizationId, params.jobId);
    const { hidden } = typesByScopes(scopes, isStrict);
    return { ...(await deliveries.listOfJob(organizationId, job, hidden, page)), ...page };
  });
}

function redeliverRoute(server: Server, slices: DeliverySlices) {
  const options = { onRequest: requireDelivery(slices), schema: redeliverSchema };
  server.post(
    `${webhookPath}/deliveries/:deliveryId/redeliver`,
    options,
    async (request, reply) => {
      const { webhookId, deliveryId } = request.params;
      const { organizationId } = callerOf(request);
      const delivery = await slices.deliveries.redeliver(organizationId, webhookId, deliveryId);
      return reply.status(202).send(delivery);
    },
  );
}

function testRoute(server: Server, { webhooks, deliveries }: DeliverySlices) {
  const options = { onRequest: requireWebhook(webhooks), schema: testSchema };
  server.post(`${webhookPath}/test`, options, async (request, reply) => {
    const { organizationId } = callerOf(request);
    const delivery = await deliveries.sendSample(organizationId, request.params.webhookId);
    return reply.status(202).send(delivery);
  });
}

/** A hook: `404` for an unknown webhook or delivery, and `403` for one of an event that the key may not read. */
function requireDelivery({ webhooks, deliveries, isStrict }: DeliverySlices) {
  const findWebhook = requireWebhook(webhooks);
  return async (request: FastifyRequest) => {
    await findWebhook(request);
    const { webhookId, deliveryId } = request.params as { webhookId: string; deliveryId: string };
    const { event } = await deliveries.find(webhookId, deliveryId);
    requireReadable(callerOf(request).scopes, event, isStrict);
  };
}
