/**
 * The reasoning that goes back to a chat's provider, with every answer of an exchange in which the model called tools.
 * DeepSeek's thinking mode rejects a dialogue without it. In other exchanges it is left out, because providers ignore it
 * there and it costs tokens.
 */
import { type Json, objectOf } from '../../../kernel/json.ts';
import type { AnswerSoFar } from '../answer.ts';
import type { AssistantMessage, DialogueMessage, ModelCall, Reasoning } from '../model.ts';

/** Characters of reasoning that are kept. Longer reasoning is cut, and the call goes on. */
export const reasoningMax = 1024 * 1024;

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

/** The fields of a detail that come in pieces. */
const pieces = ['text', 'summary', 'signature'];

/**
 * The `reasoning_details` of OpenRouter and others, which they require unchanged, and in full: beyond the bound none is
 * kept.
 */
export class ReasoningDetails {
  #details: Json[] = [];
  #characters = 0;

  take(details: unknown): void {
    for (const detail of Array.isArray(details) ? details.map(objectOf) : []) {
      if (detail === null) continue;
      const last = this.#details.at(-1);
      const isPiece = last !== undefined && isPieceOf(last, detail);
      this.#characters += isPiece ? joined(last, detail) : JSON.stringify(detail).length;
      if (this.#characters > reasoningMax) this.#details = [];
      else if (!isPiece) this.#details.push({ ...detail });
    }
  }

  /** Hands the details to the answer. */
  end(answer: AnswerSoFar): void {
    const reasoning_details = this.#details;
    this.#details = [];
    if (reasoning_details.length === 0 || this.#characters > reasoningMax) return;
    answer.takeReasoning('', { chat: { reasoning_details } });
  }
}

/** Encrypted details come whole. */
function isPieceOf({ type, index }: Json, piece: Json): boolean {
  return piece['type'] === type && piece['index'] === index && type !== 'reasoning.encrypted';
}

/** Joins a piece to its detail; returns its characters. */
function joined(detail: Json, piece: Json): number {
  let characters = 0;
  for (const name of pieces) {
    const value = piece[name];
    if (typeof value !== 'string') continue;
    const before = detail[name];
    detail[name] = typeof before === 'string' ? before + value : value;
    characters += value.length;
  }
  return characters;
}
