/** A time limit that can be stopped for a while. */
export interface TimeLimit {
  readonly signal: AbortSignal;
  pause(): void;
  resume(): void;
}

/** Stands still until it is resumed; its signal aborts after so many milliseconds of running. */
export function newTimeLimit(ms: number): TimeLimit {
  const controller = new AbortController();
  let leftMs = ms;
  let runningSince: number | null = null;
  let timer: NodeJS.Timeout | undefined;
  return {
    signal: controller.signal,
    pause() {
      clearTimeout(timer);
      if (runningSince !== null) leftMs -= performance.now() - runningSince;
      runningSince = null;
    },
    resume() {
      if (runningSince !== null) return;
      runningSince = performance.now();
      timer = setTimeout(() => controller.abort(new Error('the time limit')), Math.max(0, leftMs));
    },
  };
}
