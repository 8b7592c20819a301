/**
 * Discovers the tools of a server with several accounts and without one. What an account is shown belongs to its
 * organization alone, so each view is kept apart.
 */
import { type Discovered, RemoteFault, type View, type Viewer } from '../remote-kind.ts';

/** What one request for the tools has found. */
export interface Found extends Omit<View, 'viewer'> {
  readonly about: Discovered['about'];
}

/**
 * `discoverAs` asks with the account of an organization, or with none. Throws RemoteFault where there is no view at all.
 */
export async function discoverWithAccounts(
  organizations: readonly string[],
  discoverAs: (viewer: Viewer) => Promise<Found>,
): Promise<Discovered> {
  const viewers: Viewer[] = [null, ...organizations];
  const answers = await Promise.allSettled(viewers.map(discoverAs));
  const views: View[] = [];
  const knownViewers = new Set<Viewer>();
  const faults: unknown[] = [];
  let about: Discovered['about'] | undefined;
  for (const [i, answer] of answers.entries()) {
    const viewer = viewers[i] ?? null;
    if (answer.status === 'fulfilled') {
      const { tools, leftOut } = answer.value;
      knownViewers.add(viewer);
      views.push({ viewer, tools, leftOut });
      about ??= answer.value.about;
      continue;
    }
    const { reason: fault } = answer;
    // The server shows nothing without an account. An account that has to be connected again keeps what it was shown.
    if (viewer === null && asksForAccount(fault)) knownViewers.add(viewer);
    if (!asksForAccount(fault)) faults.push(viewer === null ? fault : ofAccount(fault));
    else if (viewer === null) faults.push(fault);
  }
  if (about !== undefined) return { views, knownViewers, about };
  throw faults.find((fault) => !asksForAccount(fault)) ?? faults[0];
}

/** The fault of an account is that of its organization. */
function ofAccount(fault: unknown): unknown {
  if (!(fault instanceof RemoteFault)) return fault;
  const { message, code, retryable, hadNoEffect, retryAfterMs } = fault;
  return new RemoteFault(message, {
    ...{ code, retryable, hadNoEffect, retryAfterMs, isOfAccount: true, cause: fault },
  });
}

const asksForAccount = (error: unknown) => error instanceof RemoteFault && error.asksForAccount;
