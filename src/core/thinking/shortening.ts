/**
 * A prompt that its provider refuses for its length: the model's window is smaller than the platform knows, or the
 * estimate of the prompt was too low. The window shrinks for the rest of the request, so the dialogue is summarized and
 * cut further, and the turn is asked for again.
 */

import { type DialogueMessage, ModelError } from '../../adapters/models/model.ts';
import type { ActiveGeneration } from './attempt.ts';
import { tokensOfMessages } from './dialogue.ts';
import type { Room } from './window.ts';

/** Prompts of one turn that are sent, each shorter than the one before. */
export const promptsMax = 4;
/** The share of the refused messages' tokens for which the next prompt has room. */
const keptShare = 0.6;

export function isTooLong(error: unknown): error is ModelError {
  return error instanceof ModelError && error.refuses === 'length';
}

/** Shrinks the window after the provider has refused these messages. Returns the window before. */
export function shrinkWindow(
  { generation }: Pick<ActiveGeneration, 'generation'>,
  { room, measure }: Room,
  refused: readonly DialogueMessage[],
): number {
  const before = generation.window;
  generation.window -= Math.ceil(room - tokensOfMessages(refused, measure) * keptShare);
  return before;
}
