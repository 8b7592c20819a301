/**
 * The port to the protocols of providers: how a call is written as a request, and how its answer is read. An
 * implementation knows its protocol alone; the exchange, its bounds and its faults are the same for all (`wire.ts`).
 */
import type { Json } from '../../kernel/json.ts';
import type { AnswerSoFar } from './answer.ts';
import {
  type ModelAnswer,
  type ModelCall,
  nothingReported,
  type Reasoning,
  type Usage,
} from './model.ts';

export interface Protocol {
  readonly name: string;
  /** The path of a request, below the base url. `name` is the provider's own name of the model. */
  pathFor(name: string): string;
  /** What authorizes a request, and what else the protocol has in its head. */
  headersOf(apiKey: string | null): Record<string, string>;
  /** The body of a request for a streamed answer. */
  bodyOf(call: ModelCall, name: string): Json;
  /** Reads one answer. */
  readerFor(answer: AnswerSoFar): AnswerReader;
  /**
   * The events of an answer that came as one document, from a server that does not stream. A document that is no
   * answer, such as an error, is one event.
   */
  eventsOf(document: Json): Json[];
}

/** Why an answer ended, as far as one event says. */
export type Ending = Exclude<ModelAnswer['finish'], 'too-long'>;

/** What the events so far say about the call. */
export interface AnswerState {
  /** As the provider reported it so far. */
  usage: Usage;
  /** The model's reasoning, where the protocol sends it beside the answer; else null. */
  reasoning: Omit<Reasoning, 'model'> | null;
  /** Whether any part of the answer has arrived. */
  isBegun: boolean;
  /** Why the answer ended; null until the provider said that it is complete. */
  ending: Ending | null;
  /** The provider's reason for an end before the answer was finished; else null. */
  givenUp: string | null;
  /** Whether no further event can follow. */
  isOver: boolean;
}

export function nothingRead(): AnswerState {
  return {
    usage: nothingReported,
    reasoning: null,
    isBegun: false,
    ending: null,
    givenUp: null,
    isOver: false,
  };
}

/** In the reasons of servers that gave an answer up: `error`, `abort`, `malformed_tool_use`. */
const failing = /error|abort|cancel|fail|insufficient|interrupt|malformed|overload|time_?d?_?out/i;

/**
 * Takes the reason for which an answer ended: how it ended, or that its provider gave it up. A reason that is not known is
 * accepted where it does not name a failure.
 */
export function takeEnding(
  state: AnswerState,
  reason: string,
  ending: Ending | undefined = undefined,
): void {
  if (ending === undefined && failing.test(reason)) state.givenUp = reason;
  state.ending = ending ?? 'other';
}

/**
 * Reads the events of one answer: what they have of the answer goes to the `AnswerSoFar`, what they say about the call
 * into the state.
 */
export interface AnswerReader {
  readonly state: Readonly<AnswerState>;
  /** Reads an event. Returns the provider's message where the event says that the call failed. Throws a ProtocolError. */
  take(event: Json): string | null;
  /** The stream has ended in order: hands over what was held back. */
  end(): void;
}

/** An event violates the protocol. */
export class ProtocolError extends Error {
  constructor(message = 'an event is not what the protocol says') {
    super(message);
  }
}

/** The text of a field; empty where there is none. Throws a ProtocolError for anything else. */
export function textIn(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new ProtocolError();
  return value;
}
