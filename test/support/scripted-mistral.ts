/** Mistral's chat completions, which refuse what is not theirs and report the usage unasked. */
import { type Body, chat, type Protocol } from './scripted-protocols.ts';

const fields = new Set([
  ...['model', 'messages', 'tools', 'max_tokens', 'temperature', 'stream', 'response_format'],
  'reasoning_effort',
]);
const callId = /^[a-zA-Z0-9]{9}$/;

export const mistral: Protocol = {
  ...chat,
  name: 'mistral',
  path: '/mistral/v1/chat/completions',
  complaint(body) {
    const extra = Object.keys(body).find((field) => !fields.has(field));
    if (extra !== undefined) return `Extra inputs are not permitted: ${extra}`;
    const ids = body.messages.flatMap(({ tool_call_id: id, tool_calls: calls = [] }: Body) => [
      ...(id === undefined ? [] : [id]),
      ...calls.map((call: Body) => call.id),
    ]);
    if (!ids.every((id: string) => callId.test(id))) {
      return 'Tool call id must be a-z, A-Z, 0-9, with a length of 9.';
    }
    return chat.complaint(body);
  },
  events: (content, size, body) =>
    chat.events(content, size, { ...body, stream_options: { include_usage: true } }),
};
