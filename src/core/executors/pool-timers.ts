/** The timers of a pool. Both stand still while nothing runs. */
import type { Clock } from '../../kernel/clock.ts';

export interface PoolTimer<Options extends unknown[] = []> {
  begin(...options: Options): void;
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

/** Calls `onIdle` at the latest moment that `begin` has named. Calling `begin` often is cheap. */
export function createIdleTimer(clock: Clock, onIdle: () => void): PoolTimer<[ms: number]> {
  let timer: NodeJS.Timeout | undefined;
  let idleAt = 0;
  const schedule = (wait: number): void => {
    timer = setTimeout(() => {
      timer = undefined;
      const left = idleAt - clock.monotonic();
      if (left > 1) schedule(left);
      else onIdle();
    }, wait).unref();
  };
  return {
    begin(ms) {
      idleAt = Math.max(idleAt, clock.monotonic() + ms);
      if (timer === undefined) schedule(ms);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
