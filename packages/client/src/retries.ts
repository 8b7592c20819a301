/** When a request is sent again, and how a call ends in time. */
import { SkillwrightError } from './errors.ts';

/** A request that is about to be sent again. */
export interface Retry {
  /** Why the last attempt failed. */
  readonly error: SkillwrightError;
  /** Milliseconds until the next attempt. */
  readonly pauseMs: number;
  /** Milliseconds since the first attempt failed. */
  readonly failingForMs: number;
}

/** The failures of a request in a row, and how many are allowed before it rejects. */
export interface Attempts {
  failed: number;
  readonly retriesMax: number;
  /** In its place: the milliseconds for which the request is retried. */
  readonly patienceMs: number | undefined;
  /** When the first of them failed, in milliseconds; undefined before. */
  since: number | undefined;
}

const firstPauseMs = 250;
const pauseMsMax = 8_000;
/** The platform's window is a minute: a longer `Retry-After` ends the retries. */
const askedPauseMsMax = 90_000;
/** For how long a request that may safely be repeated outlasts a restart of the platform. */
const restartMsMax = 120_000;

/**
 * For how many milliseconds a request with an idempotency key, or a wait for a job, is retried; undefined without
 * retries.
 */
export function patienceOf(retriesMax: number): number | undefined {
  return retriesMax === 0 ? undefined : restartMsMax;
}

/** Counts a failure. Milliseconds to wait before the next attempt; null when there is to be none. */
export function pauseAfterFailure(attempts: Attempts, askedMs: number | null): number | null {
  const { retriesMax, patienceMs } = attempts;
  attempts.failed += 1;
  attempts.since ??= Date.now();
  if (askedMs !== null && askedMs > askedPauseMsMax) return null;
  const hasEnough =
    patienceMs === undefined
      ? attempts.failed > retriesMax
      : Date.now() - attempts.since > patienceMs;
  if (hasEnough) return null;
  const longest = Math.min(pauseMsMax, firstPauseMs * 2 ** (attempts.failed - 1));
  // Clients that failed together come back one after the other, and never before the time they were given.
  return (askedMs ?? longest / 2) + (Math.random() * longest) / 2;
}

/** Resolves after the time; rejects with the signal's reason when it aborts. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** What may end a call early. */
interface Ends {
  readonly signal?: AbortSignal | undefined;
  readonly deadlineMs?: number | undefined;
}

/** The signal of a call: aborts with that of its caller, or with `timeout` when its deadline has passed. */
export function within<Result>(
  ends: Ends,
  call: (signal: AbortSignal | undefined) => Promise<Result>,
): Promise<Result> {
  const deadline = deadlineOf(ends);
  return call(deadline.signal).finally(deadline.clear);
}

/** The same for a call that ends at its own time; `clear` frees its timer. */
export function deadlineOf({ signal, deadlineMs }: Ends): {
  readonly signal: AbortSignal | undefined;
  clear(): void;
} {
  if (deadlineMs === undefined) return { signal, clear: () => {} };
  const passed = new AbortController();
  const timer = setTimeout(() => {
    const message = `The call took longer than ${deadlineMs} ms`;
    passed.abort(new SkillwrightError(message, { code: 'timeout', status: 0 }));
  }, deadlineMs);
  return {
    signal: signal === undefined ? passed.signal : AbortSignal.any([signal, passed.signal]),
    clear: () => clearTimeout(timer),
  };
}

/** Not `randomUUID`, which browsers have only on pages that came over HTTPS. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
