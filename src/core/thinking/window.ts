/** The tokens of the window that remain for the messages of the dialogue. */
import type { ToolOffer } from '../../adapters/models/model.ts';
import { sizeOfText, type TextSize } from '../../adapters/models/text-size.ts';
import type { ActiveGeneration } from './attempt.ts';
import type { WindowMeasure } from './estimates.ts';

export interface Room {
  /** Tokens. */
  readonly room: number;
  readonly measure: WindowMeasure;
  /** The size of the offered tools. */
  readonly offers: TextSize;
}

export function roomFor(
  { attempt, generation }: Pick<ActiveGeneration, 'attempt' | 'generation'>,
  tools: readonly ToolOffer[],
): Room {
  const { window, output, overhead, call, fallbacks } = generation;
  // The messages are chosen once, so they have to fit every model that may be asked.
  const measure = attempt.estimates.measure([call.model, ...fallbacks]);
  const offers = sizeOfText(JSON.stringify(tools));
  const taken = output + measure.hidden + measure.tokensOf(overhead) + measure.tokensOf(offers);
  return { room: window - taken, measure, offers };
}

/** The share of the room that files of one message may take: the rest is for texts, and for what the run reads later. */
const filesShare = 0.75;

/** Tokens that the files of a message may take. */
export function roomForFiles(
  active: Pick<ActiveGeneration, 'attempt' | 'generation'>,
  tools: readonly ToolOffer[],
  text = '',
): number {
  const { room, measure } = roomFor(active, tools);
  return Math.floor((room - measure.tokensOf(sizeOfText(text))) * filesShare);
}
