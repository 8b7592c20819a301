/**
 * The port of the queue. It carries hints: "row X may be due, look at it after so long". A hint may be
 * lost, late or doubled; the claim in the database decides. Sending hints never waits, never throws
 * and never grows without bound.
 */

import type { QueueName } from '../../kernel/queues.ts';

/** A row worth looking at. */
export interface Hint {
  readonly id: string;
  /** Tells hints of one row apart, for example by the number of claims of a job; contains no colon. */
  readonly generation: number | string;
  /** Milliseconds from now before which there is nothing to do. */
  readonly delayMs: number;
  /** Whose row it is. Rows without one count as those of one organization. */
  readonly organizationId?: string;
}

/** Looks at one row; its promise settles when the work on it has ended. A rejection is logged. */
export type HintHandler = (id: string) => Promise<void>;

export interface Consumer {
  /**
   * Offers slots to rows that need no hint. The returned function says for one row after the other, each named by
   * its organization, whether a slot is free for it; it counts the slots that it has offered.
   */
  offerSlots(): (organizationId: string) => boolean;
  /** Does work on a row that needs no hint, in one of the slots. */
  run(row: Pick<Hint, 'id' | 'organizationId'>, work: () => Promise<void>): void;
  /** Yields the slot of a row whose handler only waits; the returned function (resume) takes it back. */
  yieldSlot(organizationId?: string): () => void;
  /** Takes no more hints; resolves when the handlers under way have ended. */
  stop(): Promise<void>;
}

/** Yields a slot of a queue that a row of the organization has; the returned function (resume) takes it back. */
export type YieldSlot = (queue: QueueName, organizationId: string) => () => void;

export interface Queue {
  /** Hints beyond the queue's limit are dropped; the sweep sends them again. */
  sendHints(queue: QueueName, hints: readonly Hint[]): void;
  /** Handles hints, at most `concurrency` at a time. */
  consume(queue: QueueName, concurrency: number, handler: HintHandler): Consumer;
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
export function roundOf(now: number): number {
  return Math.floor(now / sweepRoundMs);
}
