/**
 * The reasoning of a chat's model, sent back as its provider wants it: with every answer of an exchange
 * in which the model called tools. DeepSeek's thinking mode refuses a dialogue without it; of other
 * exchanges it is left out, because it is not read there and costs tokens. The SDK does not send it for
 * every provider, so it is added to the request's body.
 */
import { objectOf, parsed } from './json.ts';
import type { DialogueMessage, ModelCall, Reasoning } from './model.ts';

/** The same fetch, with reasoning in the body where the call's dialogue has any. */
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
    const whole = messages.map((message) => {
      if (objectOf(message)?.['role'] !== 'assistant') return message;
      const reasoning = reasonings[nth++];
      return reasoning == null ? message : { ...message, [reasoning.field]: reasoning.text };
    });
    return fetch(url, { ...init, body: JSON.stringify({ ...body, messages: whole }) });
  };
}

/** For each answer that the model is shown: the reasoning that goes with it, null where none does. */
function reasoningsOf({
  model,
  messages,
}: Pick<ModelCall, 'model' | 'messages'>): (Pick<Reasoning, 'field' | 'text'> | null)[] {
  const its = messages.map((message) => ownReasoning(model, message));
  const field = its.find((reasoning) => reasoning !== undefined)?.field;
  if (field === undefined) return [];
  let hasTools = false;
  return messages.flatMap((message, i) => {
    if (message.role === 'user') hasTools = false;
    if (message.role !== 'assistant') return [];
    if (message.toolCalls.length > 0) hasTools = true;
    // An answer without anything in it is not shown.
    if (message.text === '' && message.toolCalls.length === 0) return [];
    // A turn of which the model thought nothing has to say so.
    return [hasTools ? (its[i] ?? { field, text: '' }) : null];
  });
}

function ownReasoning(model: string, message: DialogueMessage): Reasoning | undefined {
  if (message.role !== 'assistant' || message.reasoning?.model !== model) return undefined;
  return message.reasoning;
}
