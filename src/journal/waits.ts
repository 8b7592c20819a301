/**
 * Waits of runs. A wait is on record before the run waits, with its deadline. It ends once, by
 * compare-and-set on its row: here when its deadline has passed, elsewhere when what it waits for comes.
 */
import type { WaitKind } from '../database/tables.ts';
import { inputDigestOf } from '../kernel/input-digest.ts';
import { permanentError } from '../kernel/permanent-error.ts';
import { type OpenClaim, write } from './claim-writes.ts';
import {
  countBytes,
  endOnRecord,
  isInserted,
  nextStep,
  type StepFailure,
} from './journal-steps.ts';
import { findResult } from './record-queries.ts';
import { type AskedStep, findRecord, type StepRecord } from './records.ts';
import { insertSteps } from './step-queries.ts';
import type { WaitKinds } from './wait-kinds.ts';
import { endWaitingSteps, listWaiting } from './wait-queries.ts';

/** A wait that a run asks for. */
export interface WantedWait extends Omit<AskedStep, 'digest'> {
  readonly kind: WaitKind;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How a wait ended, and when; `told` as in `RecordedEnd`. */
export type WaitEnd = ({ readonly value: unknown } | { readonly error: StepFailure }) & {
  readonly at: number;
  readonly told: number | null;
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
  const { key, kind, name, parent, nth, payload } = wanted;
  const verbs = kinds.get(kind);
  if (verbs === undefined) throw permanentError(`a run may not wait for ${JSON.stringify(kind)}`);
  const records = await claim.records();
  const now = deps.clock.now();
  const { input, dueAt } = verbs.read(payload, job, now);
  const digest = inputDigestOf(input);
  const known = findRecord(records, kind, { ...wanted, digest });
  if (known !== undefined) {
    const found = await findWait(claim, kinds, known, wanted);
    records.pending.delete(known.n);
    return found;
  }
  const n = await nextStep(claim);
  const hasEnded = await write(claim, async (tx, isRepeat) => {
    if (isRepeat && (await isInserted(claim, key, tx))) return true;
    const row = { n, epoch: job.epoch, kind, generation: key, parent, turn: nth, name, digest };
    await insertSteps(tx, [
      { job_id: job.id, status: 'waiting', ...row, due_at: dueAt, started_at: now },
    ]);
    const result = await verbs.begin(tx, { job, n, name, input, dueAt }, now);
    if (result !== null) await endWaitingSteps(tx, [{ job_id: job.id, n, result }], now);
    return result !== null;
  });
  const none = { attempt: null, seen_to: null };
  const begun: StepRecord = { n, kind, name, nth, parent, status: 'waiting', digest, ...none };
  records.byKey.set(key, begun);
  return hasEnded ? findWait(claim, kinds, begun, wanted) : { n, kind, name, dueAt };
}

/** The ends of those of the waits that have ended, by number; ends those whose deadline has passed. */
export async function endsOfWaits(
  claim: OpenClaim,
  kinds: WaitKinds,
  waits: readonly OpenWait[],
): Promise<Map<number, WaitEnd>> {
  const { job, deps } = claim;
  const { read } = deps.database;
  const ends = await expireWaits(claim, kinds, waits);
  const others = waits.filter(({ n }) => !ends.has(n));
  if (others.length === 0) return ends;
  const open = new Set((await listWaiting(read, { job_id: job.id })).map(({ n }) => n));
  for (const { n } of others) if (!open.has(n)) ends.set(n, await endOfWait(claim, n, true));
  return ends;
}

/** Ends the open ones of the waits whose deadline has passed; how, by number. */
async function expireWaits(
  claim: OpenClaim,
  kinds: WaitKinds,
  waits: readonly OpenWait[],
): Promise<Map<number, WaitEnd>> {
  const { job, deps } = claim;
  const now = deps.clock.now();
  const due = waits.filter(({ dueAt }) => dueAt <= now);
  if (due.length === 0) return new Map();
  // The claim keeps others from ending them until the transaction ends.
  return write(claim, async (tx) => {
    const ends = new Map<number, WaitEnd>();
    const open = new Set((await listWaiting(tx, { job_id: job.id })).map(({ n }) => n));
    for (const { n, kind, name } of due) {
      const result = open.has(n) ? await kinds.get(kind)?.expire(tx, { job, n, name }, now) : null;
      if (!result) continue;
      await endWaitingSteps(tx, [{ job_id: job.id, n, result }], now);
      ends.set(n, { ...result, at: now, told: null });
    }
    return ends;
  });
}

/** A wait on record: its end, or the wait while it is open and before its deadline. */
async function findWait(
  claim: OpenClaim,
  kinds: WaitKinds,
  { n, status }: StepRecord,
  { kind, name }: WantedWait,
): Promise<{ readonly n: number; readonly end: WaitEnd } | OpenWait> {
  const { job, deps } = claim;
  const row = await findResult(deps.database.read, { job_id: job.id, n });
  if (row?.status === 'waiting') {
    const wait = { n, kind, name, dueAt: row.due_at ?? 0 };
    const end = (await expireWaits(claim, kinds, [wait])).get(n);
    if (end !== undefined) return { n, end };
    if (wait.dueAt > deps.clock.now()) return wait;
  }
  return { n, end: await endOfWait(claim, n, status === 'waiting') };
}

/** `isNew` if it has ended after the claim read its record. */
async function endOfWait(claim: OpenClaim, n: number, isNew: boolean): Promise<WaitEnd> {
  const end = await endOnRecord(claim, n);
  if ('error' in end) return end;
  // Results that others record meanwhile count as soon as the run gets them.
  if (isNew) countBytes(await claim.records(), end.result);
  return {
    value: (JSON.parse(end.result) as { value: unknown }).value,
    at: end.at,
    told: end.told,
  };
}
