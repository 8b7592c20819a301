/** The waits of runs, which the script of a test ends from outside, as events and decisions do on a platform. */
import type { Transaction } from '../../adapters/database/database.ts';
import type { ChildJobs } from '../../core/jobs/child-jobs.ts';
import type { EndOfWait } from '../../core/jobs/end-waits.ts';
import { sleep } from '../../core/journal/sleep.ts';
import type { WaitKinds, WaitKindVerbs } from '../../core/journal/wait-kinds.ts';
import { approvalWaits } from '../../platform/approvals/approval-waits.ts';
import { eventWaits } from '../../platform/run-events/event-waits.ts';
import {
  endingOfApproval,
  endingOfEvent,
  type Script,
  scriptedSkill,
  type WaitEnding,
} from './script.ts';
import type { AskedApproval } from './types.ts';

type BegunWait = Parameters<WaitKindVerbs['begin']>[1];

/** The ends that are to come. */
export class ScriptedEnds {
  readonly #script: Script;
  /** By job and step, because a transaction may be repeated; null for a wait that its deadline ends. */
  readonly #ends = new Map<string, (EndOfWait & { readonly at: number }) | null>();

  constructor(script: Script) {
    this.#script = script;
  }

  /** Plans the end of a wait that begins; null for its deadline. */
  plan({ job, n }: BegunWait, find: () => WaitEnding | undefined) {
    const place = `${job.id}/${n}`;
    const known = this.#ends.get(place);
    if (known !== undefined) return known;
    const ending = this.#script.answer(find);
    const { at = 0, value } = ending ?? {};
    const end = ending === undefined ? null : { job_id: job.id, n, at, result: { value } };
    this.#ends.set(place, end);
    return end;
  }

  /** When the next one comes; infinite without any. */
  next(): number {
    return Math.min(...[...this.#ends.values()].map((end) => end?.at ?? Infinity), Infinity);
  }

  /** Takes those that have come. */
  take(now: number): EndOfWait[] {
    const come = [...this.#ends.values()].filter((end) => end !== null && end.at <= now);
    return come.flatMap((end) => {
      if (end === null) return [];
      this.#ends.set(`${end.job_id}/${end.n}`, null);
      return end;
    });
  }
}

/** The kinds of waits of the platform, without that for child jobs. */
export function scriptedWaitKinds(script: Script, ends: ScriptedEnds): WaitKinds {
  const event = scripted(eventWaits, ends, ({ name, input }, now) =>
    endingOfEvent(script, name, input as { event: string; key: string | null }, now),
  );
  const approval = scripted(approvalWaits, ends, ({ name, input }, now) =>
    endingOfApproval(script, { name, ...(input as Omit<AskedApproval, 'name'>) }, now),
  );
  return new Map([
    ['sleep', sleep],
    ['event', event],
    ['approval', approval],
  ]);
}

function scripted(
  kind: WaitKindVerbs,
  ends: ScriptedEnds,
  endingOf: (wait: BegunWait, now: number) => WaitEnding | undefined,
): WaitKindVerbs {
  return {
    ...kind,
    async begin(tx: Transaction, wait, now) {
      const end = ends.plan(wait, () => endingOf(wait, now));
      const result = await kind.begin(tx, wait, now);
      return result !== null && end !== null && end.at <= now ? end.result : result;
    },
  };
}

/** The wait for a child job, which the script has to know. */
export function scriptedChildren(script: Script, jobs: ChildJobs): WaitKindVerbs {
  return {
    read: (payload, job, now) => jobs.read(payload, job, now),
    begin(tx, wait) {
      const { skill } = wait.input as { skill: string };
      script.answer(() => scriptedSkill(script, 'ctx.run', skill));
      return jobs.begin(tx, wait);
    },
    expire: () => jobs.expire(),
    abandon: () => jobs.abandon(),
  };
}
