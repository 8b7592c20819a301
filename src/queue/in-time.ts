import { setTimeout as elapsed } from 'node:timers/promises';

const closeMs = 1_500;

/** Waits for something that Redis may never answer. */
export async function inTime(done: Promise<unknown>): Promise<void> {
  await Promise.race([done.catch(() => {}), elapsed(closeMs, undefined, { ref: false })]);
}
