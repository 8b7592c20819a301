/**
 * Missed ends of children: the step of a parent that waits for a job which has ended. Settle ends both in one
 * transaction, but a worker of a version before `ctx.run` ends the child alone. A scheduler of a cluster looks
 * at the steps that wait for children, some at a time, and for each at its child alone.
 */
import type { Context } from '../context/context.ts';
import type { WaitEnds } from './end-waits.ts';
import { type ChildWait, findEndedChild, listChildWaits } from './families.store.ts';
import { resultOfChild } from './families.ts';
import type { JobError } from './states.ts';

/** Steps of one pass. */
const stepsMax = 500;
/** Sorts before all steps. */
const beginning: ChildWait = { job_id: '', n: 0 };

export class MissedEnds {
  readonly #context: Context;
  readonly #waitEnds: WaitEnds;
  /** The step after which the next pass begins. */
  #after = beginning;

  constructor(context: Context, waitEnds: WaitEnds) {
    this.#context = context;
    this.#waitEnds = waitEnds;
  }

  /** Makes one pass, which goes on where the last one stopped. */
  async endMissed(): Promise<void> {
    const { database, clock } = this.#context;
    const { read } = database;
    const waits = await listChildWaits(read, this.#after, stepsMax);
    // One at a time, because each may have a megabyte of output.
    for (const { ended_child: id } of waits) {
      const child = id === null ? undefined : await findEndedChild(read, { id });
      const end = child === undefined ? null : endOf(child);
      if (end !== null) {
        await database.write((tx) => this.#waitEnds.endWaits(tx, [end], clock.now()));
      }
    }
    this.#after = waits.length < stepsMax ? beginning : (waits.at(-1) as ChildWait);
  }
}

type EndedChild = NonNullable<Awaited<ReturnType<typeof findEndedChild>>>;

function endOf({ parent_job_id, parent_step, status, output, error }: EndedChild) {
  const reason = error === null ? null : (JSON.parse(error) as JobError);
  const result = resultOfChild(status, output, reason);
  if (parent_job_id === null || parent_step === null || result === null) return null;
  return { job_id: parent_job_id, n: parent_step, result };
}
