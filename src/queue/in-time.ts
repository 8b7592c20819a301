import { setTimeout as elapsed } from 'node:timers/promises';

const closeMs = 1_500;

/** Waits for an answer of Redis, which may never come, for `closeMs` at most. */
export async function inTime(done: Promise<unknown>): Promise<void> {
  await Promise.race([done.catch(() => {}), elapsed(closeMs, undefined, { ref: false })]);
}
