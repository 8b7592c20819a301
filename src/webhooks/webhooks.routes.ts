/** `/api/agent-webhooks` (specification: Webhooks; docs/decisions/webhooks.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf } from '../http/authenticate.ts';
import { pageParameters, type Query } from '../http/query.ts';
import { apiRefusals, bodyRefusals } from '../http/refusals.ts';
import { carries } from '../http/response-headers.ts';
import { Id, Nothing, Page, Paged } from '../http/schemas.ts';
import type { Server } from '../http/server.ts';
import type { Deliveries } from './deliveries.ts';
import {
  CreatedWebhook,
  Delivery,
  DeliveryWithBody,
  JobDelivery,
  NewWebhook,
  Webhook,
  WebhookChanges,
  webhookExample,
} from './webhooks.schemas.ts';
import type { Webhooks } from './webhooks.ts';

const tags = ['Webhooks'];
const security = [{ apiKey: [] }];

const Params = Type.Object({ webhookId: Type.String() });
const DeliveryParams = Type.Object({ webhookId: Type.String(), deliveryId: Type.String() });

const JobParams = Type.Object({ jobId: Id });

/** The organization's job, or `404`. */
type FindJob = (
  organizationId: string,
  id: string,
) => Promise<{ readonly id: string; readonly conversation_id: string }>;

export function webhookRoutes(
  server: Server,
  {
    webhooks,
    deliveries,
    findJob,
  }: { webhooks: Webhooks; deliveries: Deliveries; findJob: FindJob },
) {
  const jobOf = (request: FastifyRequest) => {
    const { jobId } = request.params as { jobId: string };
    return findJob(callerOf(request).organizationId, jobId);
  };
  /** Unknown webhooks and deliveries are 404 before any other check (docs/decisions/order-of-checks.md). */
  const lookUp = async (request: FastifyRequest) => {
    const { webhookId } = request.params as { webhookId: string };
    await webhooks.find(callerOf(request).organizationId, webhookId);
  };
  const lookUpDelivery = async (request: FastifyRequest) => {
    await lookUp(request);
    const { webhookId, deliveryId } = request.params as { webhookId: string; deliveryId: string };
    await deliveries.find(webhookId, deliveryId);
  };

  server.post(
    '/api/agent-webhooks',
    {
      schema: {
        tags,
        security,
        operationId: 'createAgentWebhook',
        summary: 'Create a webhook',
        description:
          "The agent's events of these types are delivered to the url from now on, signed with the " +
          'secret, which no other answer shows.',
        body: NewWebhook,
        response: {
          201: { ...CreatedWebhook, ...carries('Location') },
          ...apiRefusals('not_found', 'conflict', ...bodyRefusals),
        },
      },
    },
    async (request, reply) => {
      const created = await webhooks.create(callerOf(request).organizationId, request.body);
      const location = `/api/agent-webhooks/${created.id}`;
      return reply.status(201).header('location', location).send(created);
    },
  );

  server.get(
    '/api/agent-webhooks',
    {
      schema: {
        tags,
        security,
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
      },
    },
    async (request, reply) => {
      const list = await webhooks.list(callerOf(request).organizationId);
      return reply.header('x-total-count', list.length).send(list);
    },
  );

  server.get(
    '/api/agent-webhooks/:webhookId',
    {
      schema: {
        tags,
        security,
        operationId: 'getAgentWebhook',
        summary: 'Get a webhook',
        params: Params,
        response: { 200: Webhook, ...apiRefusals('not_found') },
      },
    },
    (request) => webhooks.get(callerOf(request).organizationId, request.params.webhookId),
  );

  server.put(
    '/api/agent-webhooks/:webhookId',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'updateAgentWebhook',
        summary: 'Change a webhook, deactivate or reactivate it',
        description:
          'Only what the body names changes. A new url or secret counts from the next attempt on. ' +
          'Deactivating cancels what is still to be sent.',
        params: Params,
        body: WebhookChanges,
        response: { 200: Webhook, ...apiRefusals('not_found', ...bodyRefusals) },
      },
    },
    (request) =>
      webhooks.update(callerOf(request).organizationId, request.params.webhookId, request.body),
  );

  server.delete(
    '/api/agent-webhooks/:webhookId',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'deleteAgentWebhook',
        summary: 'Delete a webhook and its deliveries',
        params: Params,
        response: { 204: Nothing, ...apiRefusals('not_found') },
      },
    },
    async (request, reply) => {
      await webhooks.remove(callerOf(request).organizationId, request.params.webhookId);
      return reply.status(204).send(null);
    },
  );

  server.get(
    '/api/agent-webhooks/:webhookId/deliveries',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'listAgentWebhookDeliveries',
        summary: 'List the deliveries of a webhook, newest first',
        params: Params,
        querystring: Page,
        response: {
          200: Paged(Delivery, 'A page of deliveries, each with its attempts.'),
          ...apiRefusals('not_found'),
        },
      },
    },
    async (request) => {
      const page = pageParameters(request.query as Query);
      const { webhookId } = request.params;
      const { organizationId } = callerOf(request);
      const { deliveries: data, total } = await deliveries.list(organizationId, webhookId, page);
      return { data, total, ...page };
    },
  );

  server.get(
    '/api/agent-webhooks/:webhookId/deliveries/:deliveryId',
    {
      onRequest: lookUpDelivery,
      schema: {
        tags,
        security,
        operationId: 'getAgentWebhookDelivery',
        summary: 'Get a delivery of a webhook, with what is sent',
        params: DeliveryParams,
        response: { 200: DeliveryWithBody, ...apiRefusals('not_found') },
      },
    },
    (request) => deliveries.get(request.params.webhookId, request.params.deliveryId),
  );

  server.get(
    '/api/jobs/:jobId/deliveries',
    {
      onRequest: async (request) => {
        await jobOf(request);
      },
      schema: {
        tags,
        security,
        operationId: 'listJobDeliveries',
        summary: 'List the deliveries that came of a job, newest first',
        description:
          'Of events that name the job, and of the one that its conversation was created with, to ' +
          'whichever webhook.',
        params: JobParams,
        querystring: Page,
        response: {
          200: Paged(JobDelivery, 'A page of deliveries, each with its attempts.'),
          ...apiRefusals('not_found'),
        },
      },
    },
    async (request) => {
      const page = pageParameters(request.query as Query);
      const { organizationId } = callerOf(request);
      const job = await jobOf(request);
      const { deliveries: data, total } = await deliveries.ofJob(organizationId, job, page);
      return { data, total, ...page };
    },
  );

  server.post(
    '/api/agent-webhooks/:webhookId/deliveries/:deliveryId/redeliver',
    {
      onRequest: lookUpDelivery,
      schema: {
        tags,
        security,
        operationId: 'redeliverAgentWebhookDelivery',
        summary: 'Deliver an event again',
        description: 'The same body once more, as a new delivery with retries of its own.',
        params: DeliveryParams,
        response: { 202: Delivery, ...apiRefusals('not_found', 'conflict') },
      },
    },
    async (request, reply) => {
      const { webhookId, deliveryId } = request.params;
      const { organizationId } = callerOf(request);
      return reply
        .status(202)
        .send(await deliveries.redeliver(organizationId, webhookId, deliveryId));
    },
  );

  server.post(
    '/api/agent-webhooks/:webhookId/test',
    {
      onRequest: lookUp,
      schema: {
        tags,
        security,
        operationId: 'testAgentWebhook',
        summary: 'Deliver a sample event',
        description:
          'A sample of the first event type that the webhook is subscribed to, with `data.test` ' +
          'true. It never counts as a failed delivery.',
        params: Params,
        response: { 202: Delivery, ...apiRefusals('not_found', 'conflict') },
      },
    },
    async (request, reply) => {
      const { organizationId } = callerOf(request);
      return reply
        .status(202)
        .send(await deliveries.test(organizationId, request.params.webhookId));
    },
  );
}
