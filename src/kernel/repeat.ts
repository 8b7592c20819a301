/** Something that is done again and again in the background. */
export interface Repeated {
  /** Begins it no more; resolves when one that is under way has ended. */
  stop(): Promise<void>;
}

/**
 * Does `task` at once and then at an interval, one at a time: what takes longer than the interval is
 * not begun beside itself. A failure is told to `onError`, and the task is tried again.
 */
export function repeat(
  everyMs: number,
  task: () => Promise<unknown>,
  onError: (error: unknown) => void,
): Repeated {
  let underWay: Promise<void> | null = null;
  const run = () => {
    underWay ??= attempt().finally(() => {
      underWay = null;
    });
  };
  async function attempt(): Promise<void> {
    try {
      await task();
    } catch (error) {
      onError(error);
    }
  }
  run();
  const timer = setInterval(run, everyMs).unref();
  return {
    async stop() {
      clearInterval(timer);
      await underWay;
    },
  };
}
