/**
 * The port of the queue. It carries hints: "row X may be due, look at it after so long". A hint may be
 * lost, late or doubled; the claim in the database decides. Sending hints never waits, never throws
 * and never grows without bound. Each hint reaches one process, as long as any consumes the queue.
 */

import type { QueueName } from '../../kernel/queues.ts';

/** A row worth looking at. */
export interface ArrivedHint {
  readonly id: string;
  /** Where a hint only announces that rows of an organization are due: due hints of one may then count as one. */
  readonly organizationId?: string | undefined;
}

/** A hint as it is sent. */
export interface Hint extends ArrivedHint {
  /** Tells hints of one row apart, for example by the number of claims of a job; contains no colon. */
  readonly generation: number | string;
  /** Milliseconds from now before which there is nothing to do. */
  readonly delayMs: number;
}

/** Takes a hint and returns soon: it never waits for the work on a row. A rejection is logged. */
export type HintHandler = (hint: ArrivedHint) => void | Promise<void>;

export interface Consumer {
  /** Takes no more hints; resolves when the handlers under way have ended. */
  stop(): Promise<void>;
}

export interface Queue {
  /** Hints beyond the queue's limit are dropped; the sweep sends them again. */
  sendHints(queue: QueueName, hints: readonly Hint[]): void;
  /** Handles the hints of a queue, those that fall due with no consumer only if the queue outlives the process. */
  consume(queue: QueueName, handler: HintHandler): Consumer;
  /** Whether so few hints wait to be handled that the sweep should send more. */
  isRunningLow(queue: QueueName): boolean;
  /** Whether the queue's store can be reached. */
  isConnected(): boolean;
  /** Drops the waiting hints and closes timers and connections. */
  close(): Promise<void>;
}

/** Hints that sweeps send for one row within this time count as one, whichever process sends them. */
const sweepRoundMs = 5_000;

/**
 * The number of the sweep round at `now`, which goes into the generation of the hints of that round.
 * Each round sends new hints, because the process that took an earlier one may have died.
 */
export function sweepNumber(now: number): number {
  return Math.floor(now / sweepRoundMs);
}
