/**
 * Reads a slow value for callers that cannot wait long. A caller gets the current value when reading is
 * quick, else the last value if it is recent enough, else null. Simultaneous callers share one read, so a
 * slow source is read once at a time.
 */
import type { Clock } from './clock.ts';
import { withDeadline } from './with-deadline.ts';

/** The longest that a caller waits for a new value. */
const answerWaitMs = 500;
/** Older values are not returned. */
const keptMs = 60_000;
/** After this time a read counts as failed, and another one may begin. */
const givenUpMs = 30_000;

/** The value, or null when it is not known. Never rejects. */
export type SharedRead<T> = () => Promise<T | null>;

export function createSharedRead<T>(
  clock: Pick<Clock, 'monotonic'>,
  read: () => Promise<T>,
): SharedRead<T> {
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
          // After a failed read the value is unknown; an old value would hide the failure.
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
    await withDeadline(underWay.done, answerWaitMs);
    return last !== null && clock.monotonic() - last.readAt <= keptMs ? last.value : null;
  };
}
