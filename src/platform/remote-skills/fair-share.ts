/** Fair shares of a limit: no organization can take all of it, so others still get a part. */

interface Taken {
  /** The number that the organization holds. */
  readonly own: number;
  /** The number that all organizations hold, including this one. */
  readonly all: number;
  readonly max: number;
}

/** Whether an organization may take one more: at most half of what the others leave free. */
export function mayTake({ own, all, max }: Taken): boolean {
  return own < max - all;
}
