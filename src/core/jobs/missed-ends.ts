/**
 * Missed ends of children: the step of a parent that waits for a job which has ended. Settle ends both in one
 * transaction, but a worker of a version before `ctx.run` ends the child alone. A scheduler of a cluster looks
 * at the steps that wait for children, some at a time, and for each at its child alone.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { EndWaits } from './end-waits.ts';
import { type ChildWait, findEndedChild, listChildWaits } from './families.store.ts';
import { resultOfChild } from './families.ts';
import type { JobError } from './states.ts';

/** Steps of one pass. */
const stepsMax = 500;
/** Sorts before all steps. */
const beginning: ChildWait = { job_id: '', n: 0 };

export interface MissedEndsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly endWaits: EndWaits;
}

/** Each call makes one pass, which goes on where the last one stopped. */
export function createMissedEnds(deps: MissedEndsDeps): () => Promise<void> {
  let after = beginning;
  return async () => {
    after = await endMissed(deps, after);
  };
}

/** Returns the step after which the next pass begins. */
async function endMissed(
  { database, clock, endWaits }: MissedEndsDeps,
  after: ChildWait,
): Promise<ChildWait> {
  const { read } = database;
  const waits = await listChildWaits(read, after, stepsMax);
  // One at a time, because each may have a megabyte of output.
  for (const { ended_child: id } of waits) {
    const child = id === null ? undefined : await findEndedChild(read, { id });
    const end = child === undefined ? null : endOf(child);
    if (end !== null) await database.write((tx) => endWaits(tx, [end], clock.now()));
  }
  return waits.length < stepsMax ? beginning : (waits.at(-1) as ChildWait);
}

type EndedChild = NonNullable<Awaited<ReturnType<typeof findEndedChild>>>;

function endOf({ parent_job_id, parent_step, status, output, error }: EndedChild) {
  const reason = error === null ? null : (JSON.parse(error) as JobError);
  const result = resultOfChild(status, output, reason);
  if (parent_job_id === null || parent_step === null || result === null) return null;
  return { job_id: parent_job_id, n: parent_step, result };
}
