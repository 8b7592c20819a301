/** A process whose clock is wrong, by libfaketime. */
import { globSync } from 'node:fs';

/** Debian's package `faketime`, or undefined where it is not installed. */
export function findFaketime(): string | undefined {
  return globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')[0];
}

/** Variables that put the clock of a process so far ahead, or behind; time that only grows stays right. */
export function skewedClock(library: string, seconds: number): Record<string, string> {
  return {
    LD_PRELOAD: library,
    FAKETIME: `${seconds < 0 ? '' : '+'}${seconds}s`,
    DONT_FAKE_MONOTONIC: '1',
  };
}
