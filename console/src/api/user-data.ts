/** Exports and erases the data of a user. */
import { ApiError, api, body, consoleHeaders, type Schema } from './client.ts';

export type Erased = Schema<'ErasedUserData'>;

/** The pause before a repetition, in which the platform serves others. */
const pauseMs = 1_000;
/** After so long in which only the log was left, it is given up. */
const patienceMs = 5 * 60_000;
const heldMessage =
  'All is erased but in the log of the database, which a backup or another transaction has held for 5 minutes: ' +
  'erase again later.';

/** The export as a file. It may be large, so it has no time limit; throws where it broke off. */
export async function exportUser(userId: string): Promise<Blob> {
  const address = `/api/users/${encodeURIComponent(userId)}/data`;
  const answer = await fetch(address, { headers: consoleHeaders() });
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null));
  const file = await answer.blob();
  const last = (await file.slice(-2_000).text()).trimEnd().split('\n').at(-1) ?? '';
  if (last.includes('"type":"end"')) return file;
  throw new Error('The export broke off before its end. Try it again.');
}

/**
 * Erases the data, repeating the request until it is done; returns the summed counts. Throws where the database's log is
 * held for long.
 */
export async function eraseUser(userId: string, cancelsJobs: boolean): Promise<Erased> {
  const sum = { memories: 0, conversations: 0, jobs: 0 };
  for (let since = Date.now(); ; ) {
    const params = {
      path: { userId },
      query: { cancel_jobs: cancelsJobs ? 'true' : 'false' },
    } as const;
    const { done, waits_for, waits_for_log, open_jobs, ...erased } = await body(
      api.DELETE('/api/users/{userId}/data', { params }),
    );
    for (const name of ['memories', 'conversations', 'jobs'] as const) sum[name] += erased[name];
    if (done || waits_for !== null) return { done, waits_for, waits_for_log, open_jobs, ...sum };
    if (!waits_for_log) since = Date.now();
    else if (Date.now() - since >= patienceMs) throw new Error(heldMessage);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
