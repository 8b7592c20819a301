import { setTimeout as pause } from 'node:timers/promises';

const pauseMinMs = 10;
const pauseMaxMs = 100;
/**
 * Deadlines end a test that would wait for ever; they judge no speed. A machine that checks changes may be several
 * times slower than one on which tests are written.
 */
const patience = process.env['CI'] === 'true' ? 4 : 1;
/** A bound of time, in milliseconds, as the machine that checks changes needs it. */
export const patient = (ms: number): number => patience * ms;
/** How long a test waits for one thing, in milliseconds, before it ends. */
export const deadlineMs = patience * 20_000;

/**
 * Waits until `condition` gives something that is neither false nor null nor undefined, and
 * returns it. A condition that throws has not come true yet; past the deadline (20 s, four times as much in CI) the error
 * says what was awaited and what went wrong last. Without `everyMs` it looks every 10 ms at first, and less
 * often the longer it waits: a look is often a request, which takes the processor from what is awaited.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: { describe: string | (() => string); deadlineMs?: number; everyMs?: number },
): Promise<Exclude<T, false | null | undefined>> {
  const { describe, everyMs } = options;
  const withinMs = options.deadlineMs === undefined ? deadlineMs : patience * options.deadlineMs;
  const begin = performance.now();
  const end = begin + withinMs;
  let cause: unknown;
  for (;;) {
    try {
      const value = await condition();
      cause = undefined;
      if (value !== false && value !== null && value !== undefined) {
        return value as Exclude<T, false | null | undefined>;
      }
    } catch (error) {
      cause = error;
    }
    if (performance.now() >= end) {
      const awaited = typeof describe === 'string' ? describe : describe();
      throw new Error(`Not within ${withinMs} ms: ${awaited}`, { cause });
    }
    await pause(everyMs ?? pauseAfter(performance.now() - begin));
  }
}

/** A tenth of the time that has passed, so that nothing is noticed much later than it happens. */
function pauseAfter(waitedMs: number): number {
  return Math.min(pauseMaxMs, Math.max(pauseMinMs, waitedMs / 10));
}
