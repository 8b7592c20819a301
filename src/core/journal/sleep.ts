/** The wait for a moment. */
import { deadlineAfter, type WaitKindVerbs } from './wait-kinds.ts';

const slept = { value: null };

export const sleep: WaitKindVerbs = {
  read({ ms, until }, _job, now) {
    if (until === undefined) return { input: { ms }, dueAt: deadlineAfter(ms, now) };
    const left = typeof until === 'number' ? Math.max(0, until - now) : until;
    return { input: { until }, dueAt: deadlineAfter(left, now) };
  },
  begin: async (_tx, { dueAt }, now) => (dueAt <= now ? slept : null),
  expire: async () => slept,
  async abandon() {},
};
