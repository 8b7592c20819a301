/** Repeats failed queries after the platform answers again or the user has signed in again. */

const recoveries = new EventTarget();

export const tellRecovered = (): void => {
  recoveries.dispatchEvent(new Event('recovered'));
};

/** Resolves after a while, upon the next recovery, or when `leaving` aborts. */
export const untilWorthATry = (ms: number, leaving: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = new AbortController();
    const signal = AbortSignal.any([leaving, over.signal]);
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      over.abort();
      resolve();
    }
    recoveries.addEventListener('recovered', done, { signal });
    leaving.addEventListener('abort', done, { signal: over.signal });
    if (leaving.aborted) done();
  });
