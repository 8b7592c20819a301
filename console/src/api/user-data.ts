/** Exports and erases the data of a user. */
import {
  type ErasedUserData as Erased,
  eraseAll,
} from '../../../packages/client/src/erase-user.ts';
import { ApiError, consoleHeaders, remove } from './client.ts';

export type { Erased };

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

/** Erases the data; returns the summed counts. Throws where the database's log is held for long. */
export function eraseUser(userId: string, cancelsJobs: boolean): Promise<Erased> {
  const query = { cancel_jobs: cancelsJobs ? 'true' : 'false' } as const;
  return eraseAll(() => remove('/api/users/{userId}/data', { path: { userId }, query }));
}
