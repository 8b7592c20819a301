/** `/api/conversations` (specification: Conversations). */
import { callerOf } from '../../adapters/http/authenticate.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { setNextOffset } from '../../adapters/http/response-headers.ts';
import type { Server } from '../../adapters/http/server.ts';
import { unknownFirst } from '../../adapters/http/unknown-first.ts';
import {
  getSchema,
  listSchema,
  messagesSchema,
  tokenUsageSchema,
} from './conversations.schemas.ts';
import type { Conversations } from './conversations.ts';

export function conversationRoutes(
  server: Server,
  { conversations }: { conversations: Conversations },
): void {
  /** Unknown conversations are 404 before the query is validated (docs/decisions/order-of-checks.md). */
  const onRequest = lookUp('id', (id, { organizationId }) =>
    conversations.find(organizationId, id),
  );
  server.get('/api/conversations', { schema: listSchema }, async (request, reply) => {
    const { limit, offset, include, ...filters } = request.query;
    const { organizationId } = callerOf(request);
    const page = { limit, offset };
    const { conversations: listed, total } = include
      ? await conversations.listOpened(organizationId, filters, page)
      : await conversations.list(organizationId, filters, page);
    return reply.header('x-total-count', total).send(listed);
  });
  const getOptions = { errorHandler: unknownFirst(onRequest), schema: getSchema };
  server.get('/api/conversations/:id', getOptions, (request) =>
    conversations.get(callerOf(request).organizationId, request.params.id),
  );
  const messagesOptions = { onRequest, schema: messagesSchema };
  server.get('/api/conversations/:id/messages', messagesOptions, async (request, reply) => {
    const { role, ...page } = request.query;
    const conversation = {
      organization_id: callerOf(request).organizationId,
      id: request.params.id,
    };
    const { messages, total, next } = await conversations.messages(conversation, role, page);
    setNextOffset(reply, next);
    return reply.header('x-total-count', total).send(messages);
  });
  const usageOptions = { onRequest, schema: tokenUsageSchema };
  server.get('/api/conversations/:id/token-usage', usageOptions, async (request, reply) => {
    const { params, query } = request;
    const { usage, next } = await conversations.tokenUsage(params.id, query.offset);
    setNextOffset(reply, next);
    return usage;
  });
}
