import { isUnavailable } from '../../kernel/errors.ts';
import { retryWhileUnavailable } from '../../kernel/retry-while-unavailable.ts';

const retryMs = 500;

/**
 * Settles a claim, and tries again while the database is away; undefined when `mayRetry`, which is asked
 * before each wait, says no. The claim keeps its lease only if it is renewed meanwhile.
 */
export async function settlePatiently<Settled>(
  settle: () => Promise<Settled>,
  mayRetry: () => boolean,
): Promise<Settled | undefined> {
  try {
    return await retryWhileUnavailable(settle, retryMs, mayRetry);
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return undefined;
  }
}
