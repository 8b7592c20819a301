/** The heap of a process of the platform: how it grows, and that it shrinks once after the start. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * With pretenuring V8 soon puts the objects of runs straight into the old generation, where all that they refer to
 * follows them and waits for the next marking of the whole heap.
 */
const growth = {
  limited: ['--no-allocation-site-pretenuring', '--heap-growing-percent=60'],
  default: ['--allocation-site-pretenuring', '--heap-growing-percent=0'],
};
/** For what is still loaded after the start, and for the first requests. */
const delayMs = 2_000;

/**
 * Sets how the heap grows from now on. To be called once the program is loaded: with these flags V8 rejects the compiled
 * code that Node brings of its own modules, and compiles each of them again.
 */
export function limitHeapGrowth(): void {
  for (const flag of growth.limited) setFlagsFromString(flag);
}

/**
 * Has V8 take compiled code as before `limitHeapGrowth`.
 * @public For scripts/record-code.ts.
 */
export function allowHeapGrowth(): void {
  for (const flag of growth.default) setFlagsFromString(flag);
}

/**
 * Collects all garbage once, some seconds from now, which holds up the process for about 20 ms. V8 would keep the memory
 * that only the start needed, because a process without work allocates too little for a collection.
 */
export function compactHeapSoon(): void {
  setTimeout(() => {
    setFlagsFromString('--expose-gc');
    const collect: (options: object) => void = runInNewContext('gc');
    setFlagsFromString('--no-expose-gc');
    // The collection of V8 for too little memory; another one keeps the free pages.
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }, delayMs).unref();
}
