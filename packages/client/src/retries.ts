/** When a request is sent again, and how a call ends in time. */
import { SkillwrightError } from './errors.ts';

/** What has become of a request so far. */
export interface Attempts {
  failed: number;
  readonly retriesMax: number;
  /** In its place: the milliseconds for which failures are borne. */
  readonly patienceMs: number | undefined;
  /** When the failures began, in milliseconds. */
  readonly since: number;
}

const firstPauseMs = 250;
const pauseMsMax = 8_000;
/** The platform's window is a minute: what asks for more is not waited for. */
const askedPauseMsMax = 90_000;
/** How long a platform that is being restarted is borne while one of its jobs is waited for. */
const restartMsMax = 120_000;

/** For how many milliseconds failures are borne while a job is waited for; undefined without retries. */
export function patienceOf({ retriesMax }: Pick<Attempts, 'retriesMax'>): number | undefined {
  return retriesMax === 0 ? undefined : restartMsMax;
}

/** Milliseconds to wait before the next attempt; null when there is to be none. */
export function pauseBefore(
  { failed, retriesMax, patienceMs, since }: Attempts,
  askedMs: number | null,
): number | null {
  if (askedMs !== null && askedMs > askedPauseMsMax) return null;
  const hasEnough =
    patienceMs === undefined ? failed > retriesMax : Date.now() - since > patienceMs;
  if (hasEnough) return null;
  const longest = Math.min(pauseMsMax, firstPauseMs * 2 ** (failed - 1));
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

/** The signal of a call: aborts with that of its caller, or with `timeout` when its deadline has passed. */
export function within<Result>(
  { signal, deadlineMs }: { signal?: AbortSignal | undefined; deadlineMs?: number | undefined },
  call: (signal: AbortSignal | undefined) => Promise<Result>,
): Promise<Result> {
  const deadline = deadlineOf({ signal, deadlineMs });
  return call(deadline.signal).finally(deadline.clear);
}

/** The same for a call that ends at its own time; `clear` frees its timer. */
export function deadlineOf({
  signal,
  deadlineMs,
}: {
  signal?: AbortSignal | undefined;
  deadlineMs?: number | undefined;
}): { readonly signal: AbortSignal | undefined; clear(): void } {
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
