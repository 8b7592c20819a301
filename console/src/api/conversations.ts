import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api, get, listed, type QueryOf, type Schema, wholePage } from './client.ts';

export type Message = Schema<'Message'>;
export type TokenUsage = Schema<'TokenUsage'>;
type ConversationFilters = QueryOf<'listConversations'>;

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
    queryFn: () => get('/api/conversations/{id}', { path: { id } }),
  });

/**
 * `page` counts from 1. `updatedAt` is the conversation's: when that has changed, there may be more to
 * read, even if its status is what it was.
 */
export const messagesQuery = (id: string, page: number, updatedAt: string) =>
  queryOptions({
    queryKey: ['conversations', id, 'messages', page, updatedAt],
    queryFn: async () => {
      const range = { limit: messagesPageSize, offset: (page - 1) * messagesPageSize };
      const answers = await wholePage(range, (query) =>
        api.GET('/api/conversations/{id}/messages', { params: { path: { id }, query } }),
      );
      const parts = await Promise.all(answers.map((answer) => listed(Promise.resolve(answer))));
      return { data: parts.flatMap(({ data }) => data), total: parts[0]?.total ?? 0 };
    },
    placeholderData: keepPreviousData,
  });

/** As `messagesQuery`. */
export const tokenUsageQuery = (id: string, updatedAt: string) =>
  queryOptions({
    queryKey: ['conversations', id, 'token-usage', updatedAt],
    queryFn: () => get('/api/conversations/{id}/token-usage', { path: { id } }),
    placeholderData: keepPreviousData,
  });

/** The newest 200 jobs of a conversation with their errors; `updatedAt` as for `messagesQuery`. */
export const turnJobsQuery = (id: string, updatedAt: string) =>
  queryOptions({
    queryKey: ['conversations', id, 'jobs', updatedAt],
    queryFn: () =>
      get('/api/jobs', { query: { conversation_id: id, include: 'timing', limit: 200 } }),
    placeholderData: keepPreviousData,
  });
