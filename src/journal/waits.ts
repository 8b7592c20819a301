/**
 * Waits of runs. A wait is on record before the run waits, with its deadline. It ends once, by
 * compare-and-set on its row: here when its deadline has passed, elsewhere when what it waits for comes.
 */
import type { WaitKind } from '../database/tables.ts';

import { digestOf } from '../kernel/digest.ts';
import { permanentError } from '../kernel/permanent-error.ts';
import { canonicalJson } from '../kernel/text.ts';
import { type OpenClaim, write } from './claim-writes.ts';
import {
  countBytes,
  endOnRecord,
  isInserted,
  nextStep,
  type StepFailure,
} from './journal-steps.ts';
import { findResult } from './record-queries.ts';
import { requireSame } from './records.ts';
import { insertSteps } from './step-queries.ts';
import type { WaitKinds } from './wait-kinds.ts';
import { endWaitingSteps, listWaiting } from './wait-queries.ts';

/** A wait that a run asks for. */
export interface WantedWait {
  /** The same in every attempt: a digest of the wait's place in the run. */
  readonly key: string;
  readonly kind: WaitKind;
  readonly name: string;
  /** The enclosing step, null for the run itself. */
  readonly parent: number | null;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How a wait ended, and when. */
export type WaitEnd = ({ readonly value: unknown } | { readonly error: StepFailure }) & {
  readonly at: number;
};

/** A wait on record that has not ended. */
export interface OpenWait {
  readonly n: number;
  readonly kind: WaitKind;
  readonly name: string;
  readonly dueAt: number;
}

/** Begins a wait, or finds it on record: its end, or the wait as long as it is open. */
export async function beginWait(
  claim: OpenClaim,
  kinds: WaitKinds,
  wanted: WantedWait,
): Promise<{ readonly n: number; readonly end: WaitEnd } | OpenWait> {
  const { job, deps } = claim;
  const { key, kind, name, parent, payload } = wanted;
  const verbs = kinds.get(kind);
  if (verbs === undefined) throw permanentError(`a run may not wait for ${JSON.stringify(kind)}`);
  const records = await claim.records();
  const now = deps.clock.now();
  const known = records.byKey.get(key);
  const { input, dueAt } = verbs.read(payload, job, now);
  const digest = digestOf(canonicalJson(input));
  if (known !== undefined) {
    requireSame(known, { kind, digest });
    const wait = await findOpen(claim, known.n, wanted);
    const found = wait ?? { n: known.n, end: await endOfWait(claim, known.n) };
    records.pending.delete(known.n);
    return found;
  }
  const n = await nextStep(claim);
  const hasEnded = await write(claim, async (tx, isRepeat) => {
    if (isRepeat && (await isInserted(claim, key, tx))) return true;
    const row = { n, epoch: job.epoch, kind, generation: key, parent, turn: 1, name, digest };
    await insertSteps(tx, [
      { job_id: job.id, status: 'waiting', ...row, due_at: dueAt, started_at: now },
    ]);
    const result = await verbs.begin(tx, { job, n, name, input, dueAt }, now);
    if (result !== null) await endWaitingSteps(tx, [{ job_id: job.id, n, result }], now);
    return result !== null;
  });
  const none = { attempt: null, seen_to: null };
  records.byKey.set(key, { n, kind, name, parent, status: 'waiting', digest, ...none });
  const open = hasEnded ? await findOpen(claim, n, wanted) : { n, kind, name, dueAt };
  return open ?? { n, end: await endOfWait(claim, n) };
}

/** The ends of those of the waits that have ended, by number; ends those whose deadline has passed. */
export async function endsOfWaits(
  claim: OpenClaim,
  kinds: WaitKinds,
  waits: readonly OpenWait[],
): Promise<Map<number, WaitEnd>> {
  const { job, deps } = claim;
  const { clock, database } = deps;
  const isDue = ({ dueAt }: OpenWait) => dueAt <= clock.now();
  if (waits.some(isDue)) {
    await write(claim, async (tx) => {
      const now = clock.now();
      const open = new Set((await listWaiting(tx, { job_id: job.id })).map(({ n }) => n));
      for (const { n, kind, name } of waits.filter((wait) => isDue(wait) && open.has(wait.n))) {
        const result = await kinds.get(kind)?.expire(tx, { job, n, name }, now);
        if (result !== undefined) await endWaitingSteps(tx, [{ job_id: job.id, n, result }], now);
      }
    });
  }
  const open = new Set((await listWaiting(database.read, { job_id: job.id })).map(({ n }) => n));
  const ends = new Map<number, WaitEnd>();
  for (const { n } of waits) if (!open.has(n)) ends.set(n, await endOfWait(claim, n));
  return ends;
}

/** The wait while it is open; undefined once it has ended. */
async function findOpen(
  { job, deps }: OpenClaim,
  n: number,
  { kind, name }: WantedWait,
): Promise<OpenWait | undefined> {
  const row = await findResult(deps.database.read, { job_id: job.id, n });
  return row?.status === 'waiting' ? { n, kind, name, dueAt: row.due_at ?? 0 } : undefined;
}

async function endOfWait(claim: OpenClaim, n: number): Promise<WaitEnd> {
  const end = await endOnRecord(claim, n);
  if ('error' in end) return end;
  // Results that others record count as soon as the run gets them.
  countBytes(await claim.records(), end.result);
  return { value: (JSON.parse(end.result) as { value: unknown }).value, at: end.at };
}
