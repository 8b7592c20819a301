/** Mistral's form of chat completions: it refuses fields and ids of calls that others ignore. */
import { createHash } from 'node:crypto';
import type { ModelCall } from '../model.ts';
import type { Protocol } from '../protocol.ts';
import { chat } from './chat.ts';

export const mistral: Protocol = {
  ...chat,
  name: 'mistral',
  // The last chunk has the usage without being asked for it.
  bodyOf: (call, name) => ({ ...chat.bodyOf(withShortIds(call), name), stream_options: undefined }),
};

/** The ids of calls as nine letters and digits, which others than its own models do not give. */
function withShortIds(call: ModelCall): ModelCall {
  const messages = call.messages.map((message): ModelCall['messages'][number] => {
    if (message.role === 'tool') return { ...message, callId: nineCharactersOf(message.callId) };
    if (message.role === 'user') return message;
    const toolCalls = message.toolCalls.map((one) => ({ ...one, id: nineCharactersOf(one.id) }));
    return { ...message, toolCalls, opaque: undefined };
  });
  return { ...call, messages };
}

/** An id of nine letters and digits: itself, or the same one each time. */
export function nineCharactersOf(id: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id;
  return createHash('sha256').update(id).digest('hex').slice(0, 9);
}
