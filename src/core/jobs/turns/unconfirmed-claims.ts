/**
 * Claims of this process whose commit was not confirmed: they may be on record without a run. It gives them back,
 * unless it has claimed the jobs again since.
 */
import type { Context } from '../../context/context.ts';
import { UnconfirmedWrites } from '../../leases/unconfirmed-writes.ts';
import { findUnbegunJobs } from '../leases.store.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import type { Settler } from '../settle.ts';
import { type ExpiredJob, giveBackUnbegun } from './recover.ts';

interface UnconfirmedClaim {
  /** Of its job. */
  readonly id: string;
}

export type UnconfirmedJobClaims = UnconfirmedWrites<UnconfirmedClaim, ExpiredJob>;

/** `claimedBy` is the number of this process on the jobs that it claims. */
export function openUnconfirmedJobClaims(
  { database, clock, config, log }: Context,
  settler: Settler,
  running: RunningJobs,
  claimedBy: number,
): UnconfirmedJobClaims {
  return new UnconfirmedWrites(
    {
      takeCommitted: async (jobs: readonly UnconfirmedClaim[]) => {
        const ids = jobs.map(({ id }) => id);
        const found = await findUnbegunJobs(database.read, ids, claimedBy);
        return found.filter(({ id }) => !running.holds(id));
      },
      settle: (job) => giveBackUnbegun(settler, job),
      onError: (err) => log.error({ err }, 'claims without a confirmation are not given back'),
    },
    clock,
    config.jobLeaseMs,
  );
}
