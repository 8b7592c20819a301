/** A periodic task in the background. */
export interface Repeated {
  /** Stops it; resolves when a run under way has ended. */
  stop(): Promise<void>;
}

/**
 * Runs `task` at once and then at an interval, one run at a time: an interval that ends during a run is
 * skipped. `onError` gets each failure, and the task runs again.
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
