import { setTimeout as elapsed } from 'node:timers/promises';
import { isUnavailable } from '../kernel/errors.ts';

const retryMs = 500;

/**
 * Settles a claim, and tries again while the database is away; undefined when the platform stops before
 * that. `onUnavailable` is called before each wait. The claim keeps its lease only if it is renewed meanwhile.
 */
export async function settlePatiently<Settled>(
  settle: () => Promise<Settled>,
  isStopping: () => boolean,
  onUnavailable: () => void,
): Promise<Settled | undefined> {
  for (;;) {
    try {
      return await settle();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      onUnavailable();
      if (isStopping()) return undefined;
      await elapsed(retryMs);
    }
  }
}
