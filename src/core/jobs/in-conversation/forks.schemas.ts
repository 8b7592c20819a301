/** What a fork looks like on the wire. */
import { Type } from 'typebox';
import { OnceGiven } from '../../../adapters/http/idempotency-key.ts';
import { apiRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { carries } from '../../../adapters/http/response-headers.ts';
import { Id } from '../../../adapters/http/schemas.ts';
import {
  conversationExample,
  conversationFields,
  operation,
  params,
} from '../../conversations/conversations.schemas.ts';
import { forkBounds, forksMax } from './forks.ts';

const NewFork = Type.Object(
  {
    before: Type.Optional({
      ...Id,
      description:
        'The first message that the fork does not have, of any role: the message to write anew. Left out, it has all messages.',
    }),
  },
  {
    title: 'NewFork',
    additionalProperties: false,
    examples: [{ before: '01990a5e-7c1b-7003-8f1e-0c5a7e9b2d14' }],
  },
);

export const forkSchema = {
  ...operation,
  operationId: 'forkConversation',
  summary: 'Fork a conversation at a message',
  description:
    'Makes a conversation of the same agent and user that begins with the messages of this one, which stays as it is. A job ' +
    `continues it with x-conversation-id. Of very long ones the newest ${forkBounds.limit} messages are copied, with up to 8 MiB. ` +
    'Copies cost no tokens, and are deleted with the jobs that said them. ' +
    `409 conflict where x-user-id is not the user of the conversation, and for more than ${forksMax} forks.`,
  params,
  headers: Type.Object({
    'x-user-id': OnceGiven('The user on whose behalf the client calls.'),
  }),
  body: NewFork,
  response: {
    201: Type.Object(
      {
        ...conversationFields,
        messages: Type.Integer({ description: 'How many messages it has.' }),
        is_cut: Type.Boolean({ description: 'Whether older messages were left out.' }),
      },
      {
        title: 'Fork',
        description: 'The new conversation.',
        ...carries('Location'),
        examples: [
          {
            ...conversationExample,
            forked_from: conversationExample.id,
            messages: 4,
            is_cut: false,
          },
        ],
      },
    ),
    ...apiRefusals('not_found', 'conflict', ...bodyRefusals),
  },
};
