/**
 * A reading: a value that takes time to read, for callers that cannot wait. A caller gets the value as
 * it is now when that is quick, else the last one that was read while it is young enough, else null.
 * Callers share one read, so a source that is slow is asked once at a time, however many ask.
 */
import type { Clock } from './clock.ts';

/** The longest that a caller waits for a new value. */
const answerWaitMs = 500;
/** A value older than this is not told any more. */
const keptMs = 60_000;
/** A read that takes longer is given up: another one may begin beside it. */
const givenUpMs = 30_000;

/** The value, or null where it is not known. Never rejects. */
export type Reading<T> = () => Promise<T | null>;

export function createReading<T>(
  clock: Pick<Clock, 'monotonic'>,
  read: () => Promise<T>,
): Reading<T> {
  let underWay: { readonly startedAt: number; readonly done: Promise<void> } | null = null;
  let last: { readonly value: T; readonly readAt: number } | null = null;

  function begin() {
    const startedAt = clock.monotonic();
    const one = {
      startedAt,
      done: read()
        .then(
          (value) => {
            if (last === null || last.readAt <= startedAt) last = { value, readAt: startedAt };
          },
          // It is known that nothing is known: an old value would hide the fault.
          () => {
            last = null;
          },
        )
        .finally(() => {
          if (underWay === one) underWay = null;
        }),
    };
    return one;
  }

  return async () => {
    if (underWay === null || clock.monotonic() - underWay.startedAt > givenUpMs) underWay = begin();
    await atMost(underWay.done, answerWaitMs);
    return last !== null && clock.monotonic() - last.readAt <= keptMs ? last.value : null;
  };
}

/** Waits for a promise that never rejects, no longer than `ms`. */
async function atMost(done: Promise<void>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  await Promise.race([done, late.promise]);
  clearTimeout(timer);
}
