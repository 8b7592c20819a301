/**
 * The sweep over claimed rows, such as jobs and deliveries. It ends the claims whose lease has expired
 * because their process died, and corrects waits and leases after the clock was set back. It never ends a
 * claim while its worker could not renew the lease: right after a stall the worker gets time to do so.
 */
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createSetBackWatch } from '../../kernel/set-back.ts';
import { createStallDetector } from './stall-detector.ts';

/** Expired claims that are ended together. */
const expiredMax = 500;

/** Rows that are claimed under a lease. */
export interface LeasedRows<Row> {
  /** The longest expired first. */
  findExpired(db: Handle, leasedUntil: number, limit: number): Promise<Row[]>;
  /** Settles a claim as lost; null when it has ended meanwhile. */
  settleLost(row: Row): Promise<unknown>;
  /** Shortens waits and leases that lie too far ahead of `now`. */
  bringForward(tx: Transaction, now: number): Promise<void>;
  /** Called with claims that were settled as lost, at least one. */
  onLost(rows: readonly Row[]): void;
  onError(error: unknown, row: Row): void;
  /** Renews the leases of this process, before any is ended. */
  renewOwn?(): Promise<void>;
}

export interface LeaseSweepDeps<Row> {
  readonly database: Database;
  readonly clock: Clock;
  readonly rows: LeasedRows<Row>;
  /** After a stall: how long workers may still renew or settle leases that have expired meanwhile. */
  readonly graceMs?: number | undefined;
  /** What a pass does besides, in this order. */
  readonly further: readonly (() => Promise<void>)[];
}

export interface LeaseSweep {
  /** Makes one pass. */
  sweep(): Promise<void>;
  /**
   * Ends every claim at once, also with a valid lease: for the start of an embedded platform, when no
   * process can hold one. How many it has ended.
   */
  endOrphans(): Promise<number>;
}

interface SweepState<Row> extends LeaseSweepDeps<Row> {
  isInGrace(): boolean;
  wasSetBack(): boolean;
  /** Whether the clock was set back and the rows were not yet brought forward. */
  mustBringForward: boolean;
}

export function createLeaseSweep<Row>(deps: LeaseSweepDeps<Row>): LeaseSweep {
  const state: SweepState<Row> = {
    ...deps,
    isInGrace: createStallDetector(deps.clock, deps.graceMs ?? 0),
    wasSetBack: createSetBackWatch(deps.clock),
    mustBringForward: false,
  };
  return {
    sweep: () => sweep(state),
    endOrphans: () => endExpired(state, Number.MAX_SAFE_INTEGER),
  };
}

async function sweep<Row>(state: SweepState<Row>): Promise<void> {
  const { database, clock, rows, isInGrace, further } = state;
  await bringForward(state);
  const isAnyExpired = (await rows.findExpired(database.read, clock.now(), 1)).length > 0;
  // Asked only after a read of the database has succeeded: a gap between two such passes is a stall.
  const mayEnd = !isInGrace();
  await runAll([
    async () => {
      if (!mayEnd || !isAnyExpired) return;
      // After the machine was suspended, the leases of this process look expired.
      await rows.renewOwn?.();
      await endExpired(state, clock.now());
    },
    ...further,
  ]);
}

/** Without this, rows would wait as much longer as the clock was set back. */
async function bringForward<Row>(state: SweepState<Row>): Promise<void> {
  const { database, clock, rows, wasSetBack } = state;
  state.mustBringForward = wasSetBack() || state.mustBringForward;
  if (!state.mustBringForward) return;
  await database.write((tx) => rows.bringForward(tx, clock.now()));
  state.mustBringForward = false;
}

/** Ends the claims whose lease had expired at `leasedUntil`; how many. */
async function endExpired<Row>(
  { database, rows }: SweepState<Row>,
  leasedUntil: number,
): Promise<number> {
  let ended = 0;
  for (;;) {
    const expired = await rows.findExpired(database.read, leasedUntil, expiredMax);
    const settled = await Promise.allSettled(expired.map((row) => rows.settleLost(row)));
    const lost = expired.filter((row, i) => {
      const one = settled[i];
      // A claim that cannot be ended must not keep the others from ending, or the process from starting.
      if (one?.status === 'rejected') rows.onError(one.reason, row);
      return one?.status === 'fulfilled' && one.value !== null;
    });
    if (lost.length > 0) rows.onLost(lost);
    ended += lost.length;
    if (lost.length < expiredMax) return ended;
  }
}

/** Runs one part after the other, also when one fails; then throws the first error. */
async function runAll(parts: readonly (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const part of parts) {
    try {
      await part();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
