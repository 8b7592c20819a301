/**
 * What the events of a stream say about the call itself: its usage, that it finished, that it failed.
 * Read here and not from the SDK, which shows a missing count as 0 and tells usage at the end only,
 * so that nothing would be known of a call that was cut. To the SDK goes what is read of an answer,
 * written in the form that it insists on; whatever else servers leave out or add does not get there.
 */
import { createChatHearing } from './chat-hearing.ts';
import type { Json } from './json.ts';
import { createMessagesHearing } from './messages-hearing.ts';
import type { Reasoning, Usage } from './model.ts';
import type { Protocol } from './providers.ts';

/** What became of one event. */
export type Heard =
  /** For the SDK in its place; none where it says nothing of the answer. */
  | { readonly events: readonly Json[] }
  /** The provider says that the call failed. */
  | { readonly error: string };

export interface Hearing {
  hear(event: unknown): Heard;
  /** Nothing more is to come of an answer that is finished: what the SDK still has to see. */
  done(): readonly Json[];
  /** As the provider reported it so far. */
  usage(): Usage;
  /** What the model said that it thought, where that is no part of the answer itself. */
  reasoning(): Omit<Reasoning, 'model'> | null;
  /** Whether anything of the answer has come. */
  isBegun(): boolean;
  /** Whether the provider said that the answer is whole. */
  isFinished(): boolean;
  /** Whether nothing more is to come. */
  isOver(): boolean;
}

export function createHearing(protocol: Protocol): Hearing {
  return protocol === 'chat' ? createChatHearing() : createMessagesHearing();
}
