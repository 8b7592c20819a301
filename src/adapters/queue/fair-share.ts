/**
 * How organizations share the slots and the hints of a queue in one process. Pure. It promises that no organization
 * keeps the others out, and that one which is alone gets everything. It decides no order among the rows of one
 * organization.
 */

/** One more slot for each of so many, for organizations that run nothing. */
const slotsPerKept = 16;

/** What slots are taken, as an organization finds them. */
export interface SlotUse {
  readonly slots: number;
  /** Slots taken by all organizations. */
  readonly taken: number;
  /** Slots taken by this one. */
  readonly own: number;
  /** Whether rows of another organization wait for a slot. */
  readonly othersWait: boolean;
}

/** Slots beyond the others in which only organizations begin that run nothing; none beside a single slot, which serializes runs. */
export function keptSlots(slots: number): number {
  return slots === 1 ? 0 : Math.ceil(slots / slotsPerKept);
}

/**
 * Whether an organization may begin one more run. While another one waits, it takes at most half of the slots
 * that the others leave free. So newcomers find free slots, and no run is interrupted for them.
 */
export function mayBegin({ slots, taken, own, othersWait }: SlotUse): boolean {
  if (own === 0) return taken < slots + keptSlots(slots);
  if (taken >= slots) return false;
  const leftByOthers = slots - (taken - own);
  return !othersWait || 2 * (own + 1) <= leftByOthers;
}

/** How many hints of a queue are kept, as an organization finds them. */
export interface HintUse {
  readonly max: number;
  /** Hints of all organizations. */
  readonly kept: number;
  /** Hints of this one. */
  readonly own: number;
  /** How many organizations have hints. */
  readonly organizations: number;
}

/** Whether one more hint is kept. Beyond the maximum, organizations with less than an equal share have as much again. */
export function mayKeepHint({ max, kept, own, organizations }: HintUse): boolean {
  if (kept < max) return true;
  return kept < 2 * max && own < max / (organizations + 1);
}
