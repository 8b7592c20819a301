import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { get, post, put, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

export type Webhook = Schema<'Webhook'>;
export type WebhookDelivery = Schema<'WebhookDelivery'>;
export type EventType = Webhook['events'][number];

export const webhooksQuery = () =>
  queryOptions({
    queryKey: ['webhooks'],
    queryFn: () => get('/api/agent-webhooks'),
  });

export const webhookQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhooks', webhookId],
    queryFn: () => get('/api/agent-webhooks/{webhookId}', { path: { webhookId } }),
    refetchInterval: live,
  });

export const deliveriesQuery = (webhookId: string, limit: number, offset: number) =>
  queryOptions({
    queryKey: ['webhooks', webhookId, 'deliveries', { limit, offset }],
    queryFn: () =>
      get('/api/agent-webhooks/{webhookId}/deliveries', {
        path: { webhookId },
        query: { limit, offset },
      }),
    placeholderData: keepPreviousData,
    refetchInterval: live,
  });

export const createWebhook = (fields: Schema<'NewWebhook'>) =>
  post('/api/agent-webhooks', { body: fields });

export const changeWebhook = (webhookId: string, changes: Schema<'WebhookChanges'>) =>
  put('/api/agent-webhooks/{webhookId}', { path: { webhookId }, body: changes });

export const deleteWebhook = (webhookId: string) =>
  remove('/api/agent-webhooks/{webhookId}', { path: { webhookId } });

export const testWebhook = (webhookId: string) =>
  post('/api/agent-webhooks/{webhookId}/test', { path: { webhookId } });

export const redeliver = (webhookId: string, deliveryId: string) =>
  post('/api/agent-webhooks/{webhookId}/deliveries/{deliveryId}/redeliver', {
    path: { webhookId, deliveryId },
  });

/** One of them, with every attempt. */
export const deliveryQuery = (webhookId: string, deliveryId: string) =>
  queryOptions({
    queryKey: ['webhooks', webhookId, 'deliveries', deliveryId],
    queryFn: () =>
      get('/api/agent-webhooks/{webhookId}/deliveries/{deliveryId}', {
        path: { webhookId, deliveryId },
      }),
    refetchInterval: live,
  });
