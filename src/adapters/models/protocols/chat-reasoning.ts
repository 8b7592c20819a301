/**
 * The reasoning that goes back to a chat's provider, with every answer of an exchange in which the model called tools.
 * DeepSeek's thinking mode rejects a dialogue without it. In other exchanges it is left out, because providers ignore it
 * there and it costs tokens.
 */
import type { AssistantMessage, DialogueMessage, ModelCall, Reasoning } from '../model.ts';

type SentReasoning = Pick<Reasoning, 'field' | 'text'>;

/** The reasoning to send with each answer of the dialogue; none for an answer that is not in it. */
export function reasoningOfAnswers({
  model,
  messages,
}: Pick<ModelCall, 'model' | 'messages'>): ReadonlyMap<AssistantMessage, SentReasoning> {
  const sent = new Map<AssistantMessage, SentReasoning>();
  const field = messages.reduce<Reasoning['field'] | undefined>(
    (found, message) => found ?? ownReasoning(model, message)?.field,
    undefined,
  );
  if (field === undefined) return sent;
  let hasTools = false;
  for (const message of messages) {
    if (message.role === 'user') hasTools = false;
    if (message.role !== 'assistant') continue;
    if (message.toolCalls.length > 0) hasTools = true;
    // A turn without reasoning needs the field too, empty.
    if (hasTools) sent.set(message, ownReasoning(model, message) ?? { field, text: '' });
  }
  return sent;
}

function ownReasoning(model: string, message: DialogueMessage): Reasoning | undefined {
  if (message.role !== 'assistant' || message.reasoning?.model !== model) return undefined;
  return message.reasoning;
}
