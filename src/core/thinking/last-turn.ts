/**
 * The last turn of a request: the model is told that it has to answer, and may call no tool. The tools stay in the
 * request, because providers refuse a dialogue with calls of tools without them, and their caches begin with them.
 */

import type { AssistantMessage, DialogueMessage } from '../../adapters/models/model.ts';
import { ThinkingError } from './thinking-error.ts';

const note =
  '[This is the last turn: no tool can be called any more. Answer now, with what is known, and say what is missing.]';

/** The messages with a note at the end of the last one, unless it is the model's own. The note is sent and not recorded. */
export function withLastTurnNote(messages: readonly DialogueMessage[]): readonly DialogueMessage[] {
  const last = messages.at(-1);
  if (last === undefined || last.role === 'assistant') return messages;
  return [...messages.slice(0, -1), { ...last, text: `${last.text}\n${note}` }];
}

/** The answer without calls that a model has made all the same; itself if there are none. */
export function withoutCalls(message: AssistantMessage): AssistantMessage {
  if (message.toolCalls.length === 0) return message;
  const { role, text } = message;
  return { role, text, toolCalls: [] };
}

/** The error of a last turn that has no text. */
export function unanswered(turn: number): ThinkingError {
  const message = `The model did not come to an answer within ${turn} turns`;
  return new ThinkingError('skill_execution_failed', message);
}
