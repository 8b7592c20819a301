import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Webhook = Schema<'Webhook'>;
export type WebhookDelivery = Schema<'WebhookDelivery'>;
export type EventType = Webhook['events'][number];

export const webhooksQuery = () =>
  queryOptions({
    queryKey: ['webhooks'],
    queryFn: () => body(api.GET('/api/agent-webhooks')),
  });

export const webhookQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhooks', webhookId],
    queryFn: () =>
      body(api.GET('/api/agent-webhooks/{webhookId}', { params: { path: { webhookId } } })),
    refetchInterval: live,
  });

const deliveriesOf = (webhookId: string, limit: number, offset: number) =>
  body(
    api.GET('/api/agent-webhooks/{webhookId}/deliveries', {
      params: { path: { webhookId }, query: { limit, offset } },
    }),
  );

export const deliveriesQuery = (webhookId: string, limit: number, offset: number) =>
  queryOptions({
    queryKey: ['webhooks', webhookId, 'deliveries', { limit, offset }],
    queryFn: () => deliveriesOf(webhookId, limit, offset),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

export const createWebhook = (fields: Schema<'NewWebhook'>) =>
  body(api.POST('/api/agent-webhooks', { body: fields }));

export const changeWebhook = (webhookId: string, changes: Schema<'WebhookChanges'>) =>
  body(
    api.PUT('/api/agent-webhooks/{webhookId}', { params: { path: { webhookId } }, body: changes }),
  );

export const deleteWebhook = (webhookId: string) =>
  body(api.DELETE('/api/agent-webhooks/{webhookId}', { params: { path: { webhookId } } }));

export const testWebhook = (webhookId: string) =>
  body(api.POST('/api/agent-webhooks/{webhookId}/test', { params: { path: { webhookId } } }));

export const redeliver = (webhookId: string, deliveryId: string) =>
  body(
    api.POST('/api/agent-webhooks/{webhookId}/deliveries/{deliveryId}/redeliver', {
      params: { path: { webhookId, deliveryId } },
    }),
  );

/** One of them, with every attempt. */
export const deliveryQuery = (webhookId: string, deliveryId: string) =>
  queryOptions({
    queryKey: ['webhooks', webhookId, 'deliveries', deliveryId],
    queryFn: () =>
      body(
        api.GET('/api/agent-webhooks/{webhookId}/deliveries/{deliveryId}', {
          params: { path: { webhookId, deliveryId } },
        }),
      ),
    refetchInterval: live,
  });
