/**
 * Gives back the memory that only the start needed. V8 would keep it, because a process without work allocates too
 * little for a collection.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** For what is still loaded after the start, and for the first requests. */
const delayMs = 2_000;

/** Collects all garbage once, some seconds from now; it holds up the process for about 20 ms. */
export function compactHeapSoon(): void {
  setTimeout(() => {
    setFlagsFromString('--expose-gc');
    const collect: (options: object) => void = runInNewContext('gc');
    // The collection of V8 for too little memory; another one keeps the free pages.
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }, delayMs).unref();
}
