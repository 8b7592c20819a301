/**
 * The queue as the rest of the program knows it: a way to say "look at row X, not before then".
 * It carries hints, never the truth: a hint may be lost, late or doubled, and the database sorts it
 * out. Sending hints never waits, never throws and never grows without bound.
 */

import type { QueueName } from '../kernel/queues.ts';

/** A row worth looking at. */
export interface Hint {
  readonly id: string;
  /** Tells hints of one row apart, for example by the number of claims of a job; contains no colon. */
  readonly generation: number | string;
  /** Milliseconds from now before which there is nothing to do. */
  readonly delayMs: number;
}

/** Looks at one row; its promise ends when the work on it does. A rejection is logged, no more. */
export type HintHandler = (id: string) => Promise<void>;

export interface Consumer {
  /** How many more rows would be handled at once: places that nobody waits for. */
  places(): number;
  /** Does work on a row that needs no hint any more, in one of the places. */
  run(id: string, work: () => Promise<void>): void;
  /**
   * Lets another row be handled while one that is handled only waits; the place is back when the
   * returned function has been called.
   */
  lend(): () => void;
  /** Takes no more hints; resolves when the handlers under way have ended. */
  stop(): Promise<void>;
}

/** Lets another row of a queue be handled, until what it answers has been called. */
export type Lend = (queue: QueueName) => () => void;

export interface Queue {
  /** Passes hints on; those that find no room are dropped, for the sweep to find again. */
  sendHints(queue: QueueName, hints: readonly Hint[]): void;
  /** Handles hints, at most `concurrency` at a time. */
  consume(queue: QueueName, concurrency: number, handler: HintHandler): Consumer;
  /** Whether so few hints wait to be handled that the sweep should send more. */
  isRunningLow(queue: QueueName): boolean;
  /** Whether the queue's store can be reached. */
  isConnected(): boolean;
  /** Drops what waits and releases what it holds. */
  close(): Promise<void>;
}

/** Hints that sweeps send for one row within this time count as one, whichever process sends them. */
const sweepRoundMs = 5_000;

/**
 * The number of the sweep round at `now`, which goes into the generation of the hints of that round.
 * Each round sends new hints, because the process that took an earlier one may have died.
 */
export function roundOf(now: number): number {
  return Math.floor(now / sweepRoundMs);
}
