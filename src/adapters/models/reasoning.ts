/**
 * Sends the reasoning of a chat's model back to its provider, with every answer of an exchange in which
 * the model called tools. DeepSeek's thinking mode rejects a dialogue without it. In other exchanges it
 * is left out, because providers ignore it there and it costs tokens. The SDK does not send it for every
 * provider, so it is added to the body of the request.
 */
import { objectOf, parsed } from '../../kernel/json.ts';
import type { DialogueMessage, ModelCall, Reasoning } from './model.ts';

/** The same fetch, which adds the reasoning of the call's dialogue to the request body. */
export function withReasoning(
  fetch: typeof globalThis.fetch,
  call: Pick<ModelCall, 'model' | 'messages'>,
): typeof globalThis.fetch {
  const reasonings = reasoningsOf(call);
  if (reasonings.every((reasoning) => reasoning === null)) return fetch;
  return (url, init) => {
    const body = objectOf(parsed(String(init?.body)));
    const messages = body?.['messages'];
    if (!Array.isArray(messages)) return fetch(url, init);
    let nth = 0;
    const withFields = messages.map((message) => {
      if (objectOf(message)?.['role'] !== 'assistant') return message;
      const reasoning = reasonings[nth++];
      return reasoning == null ? message : { ...message, [reasoning.field]: reasoning.text };
    });
    return fetch(url, { ...init, body: JSON.stringify({ ...body, messages: withFields }) });
  };
}

/** The reasoning to send with each answer of the dialogue, in order; null for none. */
function reasoningsOf({
  model,
  messages,
}: Pick<ModelCall, 'model' | 'messages'>): (Pick<Reasoning, 'field' | 'text'> | null)[] {
  const own = messages.map((message) => ownReasoning(model, message));
  const field = own.find((reasoning) => reasoning !== undefined)?.field;
  if (field === undefined) return [];
  let hasTools = false;
  return messages.flatMap((message, i) => {
    if (message.role === 'user') hasTools = false;
    if (message.role !== 'assistant') return [];
    if (message.toolCalls.length > 0) hasTools = true;
    // An empty answer is not sent.
    if (message.text === '' && message.toolCalls.length === 0) return [];
    // A turn without reasoning needs the field too, empty.
    return [hasTools ? (own[i] ?? { field, text: '' }) : null];
  });
}

function ownReasoning(model: string, message: DialogueMessage): Reasoning | undefined {
  if (message.role !== 'assistant' || message.reasoning?.model !== model) return undefined;
  return message.reasoning;
}
