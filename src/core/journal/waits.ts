/**
 * Waits of runs. A wait is on record before the run waits, with its deadline. It ends once, by
 * compare-and-set on its row: here when its deadline has passed, elsewhere when what it waits for comes.
 */
import type { WaitKind } from '../../adapters/database/tables.ts';
import { inputDigestOf } from '../../kernel/input-digest.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { type OpenClaim, write } from './claim-writes.ts';
import { endOnRecord, findInserted, nextStep, type StepFailure } from './journal-steps.ts';
import { type AskedStep, countBytes, findRecord, type StepRecord } from './records.ts';
import { insertSteps } from './step-queries.ts';
import type { WaitKinds, WaitResult } from './wait-kinds.ts';
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
  /** The enclosing step, null for the run itself. */
  readonly parent: number | null;
  /** An earlier claim began it, so it may have ended before this run waits for it. */
  readonly isOnRecord: boolean;
}

/** Begins a wait, or finds it on record: its end, or the wait as long as it is open. */
export async function beginWait(
  claim: OpenClaim,
  kinds: WaitKinds,
  wanted: WantedWait,
): Promise<{ readonly n: number; readonly end: WaitEnd } | OpenWait> {
  const { job, deps } = claim;
  const { key, kind, name, parent, nth, payload } = wanted;
  claim.waits.hasBegun = true;
  const verbs = kinds.get(kind);
  if (verbs === undefined) throw permanentError(`a run may not wait for ${JSON.stringify(kind)}`);
  const records = await claim.records();
  const now = deps.clock.now();
  const { input, dueAt } = verbs.read(payload, job, now);
  const digest = inputDigestOf(input);
  const known = findRecord(records, kind, { ...wanted, digest });
  if (known !== undefined) {
    const found = await findWait(claim, kinds, known);
    records.pending.delete(known.n);
    return found;
  }
  const n = await nextStep(claim);
  const hasEnded = await write(claim, async (tx, isRepeat) => {
    const inserted = isRepeat ? await findInserted(claim, key, tx) : undefined;
    if (inserted !== undefined) return inserted.status !== 'waiting';
    const row = { n, epoch: job.epoch, kind, generation: key, parent, turn: nth, name, digest };
    await insertSteps(tx, [
      { job_id: job.id, status: 'waiting', ...row, due_at: dueAt, started_at: now },
    ]);
    const result = await verbs.begin(tx, { job, n, name, input, dueAt }, now);
    if (result !== null) await endWaitingSteps(tx, [{ job_id: job.id, n, result }], now);
    return result !== null;
  });
  const none = { attempt: null, seen_to: null, told: null, due_at: dueAt };
  const begun = { n, kind, name, nth, parent, status: 'waiting', digest, ...none } as const;
  records.byKey.set(key, begun);
  if (hasEnded) return { n, end: await endOfWait(claim, begun, true) };
  return { n, kind, name, parent, dueAt, isOnRecord: false };
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
  for (const one of others)
    if (!open.has(one.n)) ends.set(one.n, await endOfWait(claim, one, true));
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
    const expired: { job_id: string; n: number; result: WaitResult }[] = [];
    const open = new Set((await listWaiting(tx, { job_id: job.id })).map(({ n }) => n));
    for (const { n, kind, name } of due) {
      const result = open.has(n) ? await kinds.get(kind)?.expire(tx, { job, n, name }, now) : null;
      if (result) expired.push({ job_id: job.id, n, result });
    }
    await endWaitingSteps(tx, expired, now);
    return new Map(expired.map(({ n, result }) => [n, { ...result, at: now, told: null }]));
  });
}

/** A wait on record: its end, or the wait while it is open and before its deadline. */
async function findWait(
  claim: OpenClaim,
  kinds: WaitKinds,
  known: StepRecord,
): Promise<{ readonly n: number; readonly end: WaitEnd } | OpenWait> {
  const { n } = known;
  if (known.status !== 'waiting') return { n, end: await endOfWait(claim, known, false) };
  const end = (await endsOfOpen(claim, kinds)).get(n);
  return end === undefined ? openWait(known) : { n, end };
}

/** The ends of claims' waits that were open when the claim read its records, as of the first question. */
const openEnds = new WeakMap<OpenClaim, Promise<ReadonlyMap<number, WaitEnd>>>();

/** Looks at all of them together, so that it takes as many statements for a thousand as for one. */
function endsOfOpen(claim: OpenClaim, kinds: WaitKinds): Promise<ReadonlyMap<number, WaitEnd>> {
  const known = openEnds.get(claim);
  if (known !== undefined) return known;
  const ends = claim.records().then(({ byKey }) => {
    const open = [...byKey.values()].filter(({ status }) => status === 'waiting');
    return endsOfWaits(claim, kinds, open.map(openWait));
  });
  openEnds.set(claim, ends);
  ends.catch(() => openEnds.delete(claim));
  return ends;
}

function openWait({ n, kind, name, parent, due_at }: StepRecord): OpenWait {
  return { n, kind: kind as WaitKind, name, parent, dueAt: due_at ?? 0, isOnRecord: true };
}

/** `isNew` if it has ended after the claim read its record. */
async function endOfWait(
  claim: OpenClaim,
  step: Pick<StepRecord, 'n' | 'parent'>,
  isNew: boolean,
): Promise<WaitEnd> {
  const end = await endOnRecord(claim, step);
  if ('error' in end) return end;
  // Results that others record meanwhile count as soon as the run gets them.
  if (isNew) countBytes(await claim.records(), end.result);
  return {
    value: (JSON.parse(end.result) as { value: unknown }).value,
    at: end.at,
    told: end.told,
  };
}
