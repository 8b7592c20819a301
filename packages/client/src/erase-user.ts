/** The erasure of a user's data, which takes several requests where there is much of it. */
import type { components } from './generated/schema.ts';
import { sleep } from './retries.ts';

export type ErasedUserData = components['schemas']['ErasedUserData'];

/** The pause before a repetition, in which the platform serves others. */
const pauseMs = 1_000;
/** After so long in which only the log was left, the erasure is given up. */
const logPatienceMs = 5 * 60_000;

/** All is erased but in the log of the platform's database, which a backup or another transaction holds. */
export class ErasureHeldError extends Error {
  constructor() {
    super(
      'All is erased but in the log of the database, which a backup or another transaction has held for 5 minutes: ' +
        'erase again later.',
    );
    this.name = 'ErasureHeldError';
  }
}

/**
 * Sends the request of an erasure, `userData.erase`, again until nothing is left, or the rest waits for the end of a job, and
 * returns the sums. `onRepeat` is called before the first repetition. Throws ErasureHeldError.
 */
export async function eraseAll(
  request: () => Promise<ErasedUserData>,
  {
    signal,
    onRepeat,
  }: { readonly signal?: AbortSignal | undefined; readonly onRepeat?: () => void } = {},
): Promise<ErasedUserData> {
  const sum = { memories: 0, conversations: 0, jobs: 0 };
  let since: number | undefined;
  for (;;) {
    const erased = await request();
    for (const name of ['memories', 'conversations', 'jobs'] as const) sum[name] += erased[name];
    if (erased.done || erased.waits_for !== null) return { ...erased, ...sum };
    if (since === undefined) onRepeat?.();
    if (!erased.waits_for_log) since = Date.now();
    since ??= Date.now();
    if (Date.now() - since >= logPatienceMs) throw new ErasureHeldError();
    await sleep(pauseMs, signal);
  }
}
