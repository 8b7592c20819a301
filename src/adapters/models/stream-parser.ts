/**
 * The parser of a stream's events. It reads what an event says about the call itself: usage, finish,
 * failure. The SDK is not asked for these, because it shows a missing count as 0 and reports usage at
 * the end only, so a call that was cut would have none. The parser also translates each event into the
 * strict form that the SDK expects; fields that servers add or leave out do not reach the SDK.
 */
import type { Json } from '../../kernel/json.ts';
import { nothingReported, type Reasoning, type Usage } from './model.ts';

/** The result of parsing one event. */
export type ParsedEvent =
  /** The events for the SDK in its place; empty when the event has nothing of the answer. */
  | { readonly events: readonly Json[] }
  /** Text of the answer and nothing else. It need not pass through the SDK, because nothing before it is there. */
  | { readonly text: string }
  /** The provider says that the call failed. */
  | { readonly error: string };

/** What the events so far say about the call. */
export interface StreamState {
  /** As the provider reported it so far. */
  usage: Usage;
  /** The model's reasoning, where the protocol sends it beside the answer; else null. */
  reasoning: Omit<Reasoning, 'model'> | null;
  /** Whether any part of the answer has arrived. */
  isBegun: boolean;
  /** Whether the provider marks the text of the answer as a refusal. */
  isRefusal: boolean;
  /** Whether the provider said that the answer is complete. */
  isFinished: boolean;
  /** Whether no further event can follow. */
  isOver: boolean;
}

export interface StreamParser {
  readonly state: Readonly<StreamState>;
  parse(event: unknown): ParsedEvent;
  /** Ends the stream of a finished answer. Returns the events that the SDK still needs. */
  end(): readonly Json[];
}

/** The state before the first event. */
export const nothingStreamed: Readonly<StreamState> = {
  usage: nothingReported,
  reasoning: null,
  isBegun: false,
  isRefusal: false,
  isFinished: false,
  isOver: false,
};
