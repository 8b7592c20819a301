/**
 * Missed ends of children: the step of a parent that waits for a job which has ended. Settle ends both in one
 * transaction, but a worker of a version before `ctx.run` ends the child alone. A scheduler looks at the runs
 * that wait for children, some at a time.
 */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import type { EndWaits } from './end-waits.ts';
import { findEndedChild, listEndedChildren, listWaitingParents } from './families.store.ts';
import { resultOfChild } from './families.ts';
import type { JobError } from './states.ts';

/** Parents of one pass, and children whose waits it ends. */
const parentsMax = 200;
const childrenMax = 200;

export interface MissedEndsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly endWaits: EndWaits;
}

/** Each call makes one pass, which goes on where the last one stopped. */
export function createMissedEnds(deps: MissedEndsDeps): () => Promise<void> {
  let after = '';
  return async () => {
    after = await endMissed(deps, after);
  };
}

/** Returns the parent after which the next pass begins; empty to begin anew. */
async function endMissed({ database, clock, endWaits }: MissedEndsDeps, after: string) {
  const { read } = database;
  const parents = await listWaitingParents(read, { after, limit: parentsMax });
  const ids = parents.map(({ job_id }) => job_id);
  if (ids.length === 0) return '';
  const children = await listEndedChildren(read, { parentIds: ids, limit: childrenMax });
  // One at a time, because each may have a megabyte of output.
  for (const { id } of children) {
    const child = await findEndedChild(read, { id });
    const end = child === undefined ? null : endOf(child);
    if (end !== null) await database.write((tx) => endWaits(tx, [end], clock.now()));
  }
  // Children beyond the bound are found once those of this pass have ended.
  if (children.length === childrenMax) return after;
  return ids.length < parentsMax ? '' : (ids.at(-1) as string);
}

type EndedChild = NonNullable<Awaited<ReturnType<typeof findEndedChild>>>;

function endOf({ parent_job_id, parent_step, status, output, error }: EndedChild) {
  const reason = error === null ? null : (JSON.parse(error) as JobError);
  const result = resultOfChild(status, output, reason);
  if (parent_job_id === null || parent_step === null || result === null) return null;
  return { job_id: parent_job_id, n: parent_step, result };
}
