import { setTimeout as pause } from 'node:timers/promises';

/**
 * Waits until `condition` gives something that is neither false nor null nor undefined, and
 * returns it. A condition that throws has not come true yet; past the deadline (10 s) the error
 * says what was awaited and what went wrong last.
 */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  options: { describe: string | (() => string); deadlineMs?: number; everyMs?: number },
): Promise<Exclude<T, false | null | undefined>> {
  const { describe, deadlineMs = 10_000, everyMs = 10 } = options;
  const end = performance.now() + deadlineMs;
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
      throw new Error(`Not within ${deadlineMs} ms: ${awaited}`, { cause });
    }
    await pause(everyMs);
  }
}
