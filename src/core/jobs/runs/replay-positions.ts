/** The positions of the ends that a run gets, in the record of its job: a replay delivers them in this order. */
import { nextPlace } from '../../journal/records.ts';
import { type Attempt, journalOf } from './attempt.ts';

export class ReplayPositions {
  readonly attempt: Attempt;
  /** Whether a tool of a model gets the ends. The pending records are those of the run itself: each tool is repeated by itself. */
  readonly isOfTool: boolean;

  constructor(attempt: Attempt, isOfTool: boolean) {
    this.attempt = attempt;
    this.isOfTool = isOfTool;
  }

  /** Takes the next one. The records are read before the first end has a place. */
  next(): number {
    const { records } = this.attempt;
    return records === undefined ? 0 : records.nextEnd++;
  }

  /** Records the place of an end that is on record without one. */
  record(n: number, place: number): void {
    journalOf(this.attempt).recordPlace(n, place);
  }

  /** The least place on record whose end the code has still to request; infinite if there is none. */
  awaited(): number {
    const { records } = this.attempt;
    return records === undefined || this.isOfTool ? Number.POSITIVE_INFINITY : nextPlace(records);
  }
}
