/** Decides whether and when a failed call of a model is retried. */

import { type ModelError, mayBeCharged } from '../../adapters/models/model.ts';
import { delayAfter } from '../../kernel/backoff.ts';
import { ProviderBusyError } from '../paces/busy-error.ts';

/** Tries of one turn in one attempt of the job; fewer where the provider may charge for them. */
const triesMax = { free: 3, charged: 2 };
/** Failed tries of one turn that may have been charged, over all attempts of the job. */
export const unansweredMax = 3;
const backoff = { baseMs: 500, maxMs: 10_000 };

/**
 * Milliseconds until the next try, null for no further try at once: another model is asked, or the turn waits, as after a
 * wait that was in vain. Where the provider has said for how long it is to be left alone, its pace has the delay.
 */
export function delayBefore(
  error: ModelError,
  tries: number,
  { hasNext, hasWaited }: { readonly hasNext: boolean; readonly hasWaited: boolean },
): number | null {
  if (hasNext || hasWaited || error instanceof ProviderBusyError) return null;
  const most = mayBeCharged(error.usage) ? triesMax.charged : triesMax.free;
  // A timeout has already taken long, so the job is retried instead.
  if (error.fault !== 'unavailable' || error.wasSilent || tries >= most) return null;
  return error.isRateLimited || error.retryAfterMs !== null ? 0 : delayAfter(backoff, tries);
}

/** Calls without an answer that may have been charged, by `triesKey`. */
export type Unanswered = Map<string, number>;

export const triesKey = (turn: number, model: string) => `${turn} ${model}`;

/** Whether a model may be asked again for a turn. */
export function hasTries(unanswered: Unanswered, key: string): boolean {
  return (unanswered.get(key) ?? 0) < unansweredMax;
}

/** Counts a call without an answer. Returns whether its model has no tries left for the turn. */
export function isOutOfTries(
  unanswered: Unanswered,
  key: string,
  { fault, usage, isDown }: ModelError,
): boolean {
  // A provider that is down is waited for: budgets are charged an estimate for each such call.
  if (fault !== 'unavailable' || isDown || !mayBeCharged(usage)) return false;
  const calls = (unanswered.get(key) ?? 0) + 1;
  unanswered.set(key, calls);
  return !hasTries(unanswered, key);
}
