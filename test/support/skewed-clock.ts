/** A process whose clock is wrong, by libfaketime. */
import { globSync } from 'node:fs';

/**
 * Debian's package `faketime`, or undefined where it is not installed, which is said; with `CI=true` it
 * must not be missing.
 */
export function findFaketime(): string | undefined {
  const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
  if (library !== undefined) return library;
  const sentence = 'faketime is not installed (Debian: apt-get install faketime)';
  if (process.env['CI'] === 'true')
    throw new Error(`${sentence}, and with CI=true nothing is skipped.`);
  process.stderr.write(`\n${sentence}: no process of these tests has a wrong clock.\n`);
  return undefined;
}

/** Variables that put the clock of a process so far ahead, or behind; time that only grows stays right. */
export function skewedClock(library: string, seconds: number): Record<string, string> {
  return {
    LD_PRELOAD: library,
    FAKETIME: `${seconds < 0 ? '' : '+'}${seconds}s`,
    DONT_FAKE_MONOTONIC: '1',
  };
}
