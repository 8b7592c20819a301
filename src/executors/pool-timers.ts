/** The timers of a pool. Both stand still while nothing runs. */
import type { Clock } from '../kernel/clock.ts';

export interface PoolTimer {
  begin(): void;
  stop(): void;
}

/** Calls `look` every `ms` until it returns false. */
export function createWatch(
  clock: Clock,
  ms: number,
  look: (wasAbsent: boolean) => boolean,
): PoolTimer {
  let timer: NodeJS.Timeout | undefined;
  const schedule = (): void => {
    const dueAt = clock.monotonic() + ms;
    timer = setTimeout(() => {
      // This process itself was blocked, so the children's silence is not their fault.
      const wasAbsent = clock.monotonic() - dueAt > ms;
      // Messages that the children have already sent are read first.
      setImmediate(() => {
        if (timer === undefined) return;
        timer = undefined;
        if (look(wasAbsent)) schedule();
      });
    }, ms);
  };
  return {
    begin() {
      if (timer === undefined) schedule();
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

/** Calls `onIdle` once `begin` has not been called for `ms`. Calling `begin` often is cheap. */
export function createIdleTimer(clock: Clock, ms: number, onIdle: () => void): PoolTimer {
  let timer: NodeJS.Timeout | undefined;
  let since = 0;
  const schedule = (wait: number): void => {
    timer = setTimeout(() => {
      timer = undefined;
      const left = since + ms - clock.monotonic();
      if (left > 1) schedule(left);
      else onIdle();
    }, wait).unref();
  };
  return {
    begin() {
      since = clock.monotonic();
      if (timer === undefined) schedule(ms);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
