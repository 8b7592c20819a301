/**
 * Marks the results of tools as data (`quoted.ts`). Equal results are marked equally, so that a provider's cache of a
 * prompt stays valid.
 */
import type { DialogueMessage, ToolMessage } from '../../adapters/models/model.ts';
import { fileOffer } from './own-tools.ts';
import { quoted, quotingRule } from './quoted.ts';

/** For the system prompt of a model with tools. */
export const resultsRule = quotingRule('The result of a tool', 'result');

/** The messages as a model is sent them. */
export function withMarks(messages: readonly DialogueMessage[]): DialogueMessage[] {
  return messages.map((message) => (message.role === 'tool' ? marked(message) : message));
}

function marked(message: ToolMessage): ToolMessage {
  // The files of a skill are its operator's instructions.
  if (message.name === fileOffer.name) return message;
  return { ...message, text: quoted(message.text, 'result') };
}
