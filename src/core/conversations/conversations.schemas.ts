/** What conversations look like on the wire (specification: Conversations). */
import { Type } from 'typebox';
import {
  conversationStatuses,
  messageRoles,
  triggerTypes,
} from '../../adapters/database/tables.ts';
import { apiRefusals } from '../../adapters/http/refusals.ts';
import { carries } from '../../adapters/http/response-headers.ts';
import {
  Cost,
  FilterText,
  Id,
  Limit,
  Nullable,
  noTokenStats,
  noTokenSums,
  Offset,
  Page,
  Timestamp,
  Tokens,
  tokenParts,
  tokenStats,
  tokenSums,
  Words,
} from '../../adapters/http/schemas.ts';
import { NamedFile } from '../files/files.schemas.ts';
import { openingLength } from './conversations.ts';

export const operation = { tags: ['Conversations'], security: [{ apiKey: [] }] };

export const conversationFields = {
  id: Id,
  agent_id: Type.String(),
  user_id: Type.String(),
  status: Words(conversationStatuses),
  trigger_type: Words(triggerTypes),
  forked_from: Type.Optional({
    ...Id,
    description:
      'Of a fork: the conversation whose messages it begins with; of a fork of a fork the first of them.',
  }),
  created_at: Timestamp,
  updated_at: Timestamp,
};
const ListedConversation = Type.Object(
  { ...conversationFields, opening: Type.Optional(Nullable(Type.String())) },
  { title: 'ListedConversation' },
);
export const conversationExample = {
  id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
  agent_id: 'default',
  user_id: 'nightly reports',
  status: 'completed',
  trigger_type: 'api',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.120Z',
};
const Message = Type.Object(
  {
    id: Id,
    conversation_id: Id,
    role: Words(messageRoles),
    kind: {
      ...Words(['message', 'summary', 'unfinished']),
      description:
        'summary: the model has summarized the messages before it, which it is no longer sent. unfinished: what had come of an answer whose call did not finish; no model is sent it.',
    },
    content: Type.String(),
    files: Type.Optional(
      Type.Array(NamedFile, {
        minItems: 1,
        description:
          'Its files that there still are, if any: of a task, those that the platform keeps; of an answer, the pictures that the model has made; of an output, those that it names.',
      }),
    ),
    model: {
      ...Nullable(Type.String()),
      description: 'The model that wrote it, as provider/model; null where none did.',
    },
    created_at: Timestamp,
  },
  { title: 'Message' },
);
const messageExample = {
  id: '01990a5e-7c1b-7001-8f1e-0c5a7e9b2d12',
  conversation_id: conversationExample.id,
  role: 'user',
  kind: 'message',
  content: '{"text":"hello"}',
  model: null,
  created_at: '2026-01-01T00:00:00.000Z',
};
export const params = Type.Object({ id: { ...Id, description: 'The id of the conversation.' } });

export const listSchema = {
  ...operation,
  operationId: 'listConversations',
  summary: 'List conversations, newest first',
  querystring: Type.Object({
    agent_id: Type.Optional(FilterText('Conversations of this agent.')),
    user_id: Type.Optional(FilterText('Conversations of this user.')),
    status: Type.Optional({
      ...Words(conversationStatuses),
      description: 'Conversations of this status.',
    }),
    trigger_type: Type.Optional({
      ...Words(triggerTypes),
      description: 'Conversations that were started in this way.',
    }),
    include: Type.Optional({
      ...Words(['opening']),
      description: `opening: also the first ${openingLength} characters of the first message.`,
    }),
    ...Page.properties,
  }),
  response: {
    200: Type.Array(ListedConversation, {
      description: 'A page of conversations; X-Total-Count is the total number.',
      examples: [[conversationExample]],
    }),
    ...apiRefusals(),
  },
};
export const getSchema = {
  ...operation,
  operationId: 'getConversation',
  summary: 'Get a conversation with its tokens',
  params,
  response: {
    200: Type.Object(
      { ...conversationFields, ...tokenSums },
      {
        title: 'Conversation',
        description: 'The conversation.',
        examples: [{ ...conversationExample, ...noTokenSums }],
      },
    ),
    ...apiRefusals('not_found'),
  },
};
export const messagesSchema = {
  ...operation,
  operationId: 'listMessages',
  summary: 'List the messages of a conversation, oldest first',
  params,
  querystring: Type.Object({
    role: Type.Optional({ ...Words(messageRoles), description: 'Messages of this role.' }),
    limit: Limit({ default: 100, maximum: 500 }),
    offset: Offset,
  }),
  response: {
    200: Type.Array(Message, {
      description: 'A page of messages; X-Total-Count is the total number.',
      ...carries('X-Next-Offset'),
      examples: [[messageExample]],
    }),
    ...apiRefusals('not_found'),
  },
};
export const tokenUsageSchema = {
  ...operation,
  operationId: 'getTokenUsage',
  summary: 'Get the tokens of a conversation, message by message',
  description: 'For a very long conversation, offset is the first message of the page.',
  params,
  querystring: Type.Object({ offset: Offset }),
  response: {
    200: Type.Object(
      {
        conversation_id: Id,
        ...tokenStats,
        breakdown: Type.Array(
          Type.Object({
            message_id: Id,
            role: Words(messageRoles),
            prompt_tokens: Tokens,
            completion_tokens: Tokens,
            ...tokenParts,
            cost_usd: Cost('US dollars for the reported tokens; null where it is unknown.'),
          }),
        ),
      },
      {
        title: 'TokenUsage',
        description:
          'The totals are the sums of the whole breakdown. Tokens of jobs that those of the conversation have started are in the nested_token_stats of the conversation.',
        ...carries('X-Next-Offset'),
        examples: [{ conversation_id: conversationExample.id, ...noTokenStats, breakdown: [] }],
      },
    ),
    ...apiRefusals('not_found'),
  },
};
