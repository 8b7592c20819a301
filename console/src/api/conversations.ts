import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, body, listed, type Schema } from './client.ts';
import type { operations } from './schema.ts';

export type Message = Schema<'Message'>;
export type TokenUsage = Schema<'TokenUsage'>;
type ConversationFilters = NonNullable<operations['listConversations']['parameters']['query']>;

/** Messages on a page of a transcript. */
export const messagesPageSize = 200;

export const conversationsQuery = (query: ConversationFilters) =>
  queryOptions({
    queryKey: ['conversations', 'list', query],
    queryFn: () => listed(api.GET('/api/conversations', { params: { query } })),
    placeholderData: keepPreviousData,
  });

export const conversationQuery = (id: string) =>
  queryOptions({
    queryKey: ['conversations', id],
    queryFn: () => body(api.GET('/api/conversations/{id}', { params: { path: { id } } })),
  });

/**
 * `page` counts from 1. `updatedAt` is the conversation's: when that has changed, there may be more to
 * read, even if its status is what it was.
 */
export const messagesQuery = (id: string, page: number, updatedAt: string) =>
  queryOptions({
    queryKey: ['conversations', id, 'messages', page, updatedAt],
    queryFn: () =>
      listed(
        api.GET('/api/conversations/{id}/messages', {
          params: {
            path: { id },
            query: { limit: messagesPageSize, offset: (page - 1) * messagesPageSize },
          },
        }),
      ),
    placeholderData: keepPreviousData,
  });

/** As `messagesQuery`. */
export const tokenUsageQuery = (id: string, updatedAt: string) =>
  queryOptions({
    queryKey: ['conversations', id, 'token-usage', updatedAt],
    queryFn: () =>
      body(api.GET('/api/conversations/{id}/token-usage', { params: { path: { id } } })),
    placeholderData: keepPreviousData,
  });
