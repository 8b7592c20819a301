/** Whether and when a call of a model that failed is made again. */
import { delayAfter } from '../kernel/backoff.ts';
import { type ModelError, mayBeCharged } from '../models/model.ts';

/** Tries of one turn in one attempt of the job; fewer where the provider may charge for them. */
const triesMax = { free: 3, charged: 2 };
/** Failed tries of one turn that may have been charged, over all attempts of the job. */
export const unansweredMax = 3;
const backoff = { baseMs: 500, maxMs: 10_000 };
/** After a longer delay the whole job is retried instead. */
const waitMax = 20_000;

/** Milliseconds until the next try, null when there is none. */
export function delayBefore(error: ModelError, tries: number): number | null {
  const most = mayBeCharged(error.usage) ? triesMax.charged : triesMax.free;
  // After a silence, which took long already, the job is retried instead.
  if (error.fault !== 'unavailable' || error.wasSilent || tries >= most) return null;
  const delayMs = error.retryAfterMs ?? delayAfter(backoff, tries);
  return delayMs <= waitMax ? delayMs : null;
}

/** Counts a call without an answer in `unanswered`, by turn. Returns whether its turn has no tries left. */
export function isOutOfTries(
  unanswered: Map<number, number>,
  turn: number,
  { fault, usage }: ModelError,
): boolean {
  if (fault !== 'unavailable' || !mayBeCharged(usage)) return false;
  const calls = (unanswered.get(turn) ?? 0) + 1;
  unanswered.set(turn, calls);
  return calls >= unansweredMax;
}
