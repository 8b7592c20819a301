/** The waits of runs: their requests, and the answers of the journal. */
import type { WaitKind } from '../../adapters/database/tables.ts';
import type { StepFailure } from './journal-steps.ts';
import type { StepPlace } from './records.ts';

/** A wait that a run asks for. */
export interface WaitRequest extends Omit<StepPlace, 'digest'> {
  readonly kind: WaitKind;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How a wait ended, and when; `place` as in `RecordedEnd`. */
export type WaitEnd = ({ readonly value: unknown } | { readonly error: StepFailure }) & {
  readonly at: number;
  readonly place: number | null;
};

/** A wait on record that has not ended. */
export interface OpenWait {
  readonly n: number;
  readonly kind: WaitKind;
  readonly name: string;
  readonly dueAt: number;
  /** The enclosing step, null for the run itself. */
  readonly parent: number | null;
  /** An earlier claim began it, so it may have ended before this run waits for it. */
  readonly isOnRecord: boolean;
}
