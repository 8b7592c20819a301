import { changeSession } from '../api/queries.ts';
import type { Session } from '../api/session.ts';
import { tellProblem } from '../ui/toast.ts';

/** Signs out, or enters another organization; `failed` is told when it could not be done. */
export async function changeSignedIn(
  change: () => Promise<Session | null>,
  failed: string,
): Promise<void> {
  try {
    changeSession(await change());
  } catch (error) {
    tellProblem(failed, error);
  }
}
