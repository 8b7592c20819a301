/** Bounds that organizations share: one alone can never take all, and a new one finds room until many have come. */

interface Taken {
  /** What the organization has. */
  readonly own: number;
  /** What all have, this one too. */
  readonly all: number;
  readonly max: number;
}

/** Whether an organization may take one more: it has at most half of what the others leave free. */
export function mayTake({ own, all, max }: Taken): boolean {
  return own < max - all;
}
