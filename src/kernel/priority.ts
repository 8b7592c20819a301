/** The priorities of jobs, which order the work within one organization. */

/** From the first to the last; the column of a job has the place in this list. */
export const priorities = ['high', 'normal', 'low'] as const;
export type Priority = (typeof priorities)[number];
export const normalPriority = priorities.indexOf('normal');

/** The place in `priorities` of the first that is set; normal where none is. */
export function firstPriority(...given: readonly (Priority | null)[]): number {
  const first = given.find((one) => one !== null);
  return first === undefined ? normalPriority : priorities.indexOf(first);
}
