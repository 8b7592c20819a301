/**
 * The records that a claim finds of its job: the named steps, the called skills, the requests to models and
 * the waits of earlier claims, by key. Counts those that the run has not requested yet, because its code must
 * request everything that is on record.
 */
import { codeWaitKinds, type StepKind } from '../../adapters/database/tables.ts';
import { differenceOf, wholeDigest } from '../../kernel/input-digest.ts';
import type { RecordedRow } from './record-queries.ts';

/** Steps of a job, of all kinds. */
const stepsMax = 10_000;
/** Bytes of JSON: of one result, and of all results of a job. */
export const resultBytesMax = 1024 * 1024;
const bytesMax = 64 * 1024 * 1024;

/** The code of a run does not fit its record, or a bound is passed. Ends the job, even if the code catches it. */
export class JournalFault extends Error {
  readonly code: 'replay_diverged' | 'skill_execution_failed';
  readonly retryable = false;
  constructor(code: JournalFault['code'], message: string) {
    super(message);
    this.name = 'JournalFault';
    this.code = code;
  }
}

/** What code requests by key: a step, a wait, or a request to a model with all its turns and tools. */
export type RecordedKind = Exclude<StepKind, 'model' | 'tool' | 'guard'>;

/** A step on record; of a request to a model the first of its steps. */
export interface StepRecord
  extends Pick<
    RecordedRow,
    'n' | 'name' | 'parent' | 'status' | 'digest' | 'attempt' | 'seen_to' | 'told' | 'due_at'
  > {
  readonly kind: RecordedKind;
  /** Its number among equal names. */
  readonly nth: number;
}

/** A request of the code of a run. */
export interface StepPlace extends Pick<StepRecord, 'name' | 'parent' | 'digest' | 'nth'> {
  /** The same in every attempt: a digest of its place in the run. */
  readonly key: string;
}

/** An end on record. `place` is that in the order in which the job's runs got ends, null if none has got it. */
export interface RecordedEnd {
  readonly n: number;
  readonly at: number;
  readonly place: number | null;
}

export interface Records {
  readonly byKey: Map<string, StepRecord>;
  /** The number of the job's last step when the claim began. */
  readonly last: number;
  /** The place of the next end that the run gets. */
  nextEnd: number;
  /** Bytes of all results of the job. */
  bytes: number;
  /** Records that the code has to request, and has not got yet. */
  readonly pending: Map<number, StepRecord>;
  /** Records within called skills that did not complete; they have to be requested once those run again. */
  readonly inner: Map<number, StepRecord[]>;
  /** The pending records whose end an earlier run got, the last one first, and those that this run has got meanwhile. */
  readonly ends: StepRecord[];
}

/** A wait for a provider is none that code knows of: it may ask for other things when its run goes on. */
const isWait: ReadonlySet<StepKind> = new Set(codeWaitKinds);
const isRecorded: ReadonlySet<string> = new Set(['completed', 'failed', 'waiting']);

/** `attempt` is the one that the claim makes. */
export function readRecords(rows: readonly RecordedRow[], attempt: number): Records {
  const records: Records = {
    byKey: new Map(),
    last: rows.at(-1)?.n ?? 0,
    nextEnd: 1,
    bytes: 0,
    pending: new Map(),
    inner: new Map(),
    ends: [],
  };
  const hasWaited = rows.some(({ kind }) => isWait.has(kind));
  const required = new Set<string>();
  const named = new Set<number | null>();
  for (const row of rows) {
    if (row.kind === 'step') named.add(row.n);
    records.bytes += row.bytes ?? 0;
    records.nextEnd = Math.max(records.nextEnd, (row.told ?? 0) + 1);
    const record = recordOf(row);
    const { generation: key } = row;
    // A request to a model has many rows: that counts which has to be requested, else the first.
    if (record === null || required.has(key)) continue;
    // The code within a named step is free: where it runs again, it may make other calls.
    const isFree = named.has(row.parent) || isHeld(key);
    const isRequired = mustBeRequested(record, attempt, hasWaited) && !isFree;
    if (isRequired || !records.byKey.has(key)) records.byKey.set(key, record);
    if (!isRequired) continue;
    required.add(key);
    if (row.parent === null) records.pending.set(row.n, record);
    else addTo(records.inner, row.parent, record);
  }
  addEnds(records, records.pending.values());
  return records;
}

/** The key of a wait that a service requests while it holds a call: made again, the call may request another. */
export function heldKey(place: string): string {
  return `${heldPrefix}${place}`;
}

const heldPrefix = 'held:';
const isHeld = (key: string) => key.startsWith(heldPrefix);

function addEnds({ ends }: Records, added: Iterable<StepRecord>): void {
  const length = ends.length;
  for (const record of added) if (record.told !== null) ends.push(record);
  if (ends.length > length) ends.sort((a, b) => (b.told ?? 0) - (a.told ?? 0));
}

/** The least place of the recorded ends that the run has not got yet; infinite without any. */
export function nextPlace({ ends, pending }: Records): number {
  for (;;) {
    const last = ends.at(-1);
    if (last === undefined) return Number.POSITIVE_INFINITY;
    if (pending.has(last.n)) return last.told ?? 0;
    ends.pop();
  }
}

/** Null for a tool, and a guard of one or of an answer, which no code requests. Guards of the user's message come before a model. */
function recordOf(row: RecordedRow): StepRecord | null {
  const { kind, turn: nth } = row;
  if (kind === 'tool' || (kind === 'guard' && nth > 0)) return null;
  if (kind !== 'model' && kind !== 'guard') return { ...row, kind, nth };
  return { ...row, kind: 'generate', name: 'generate', nth: 1, digest: null };
}

/**
 * A called skill and a request to a model are known by their input. A new attempt may make them with other
 * input, and so may a run that has never waited.
 */
function mustBeRequested(record: StepRecord, attempt: number, hasWaited: boolean): boolean {
  if (!isRecorded.has(record.status)) return false;
  return !isCall(record) || (hasWaited && record.attempt === attempt);
}

const isCall = ({ kind }: Pick<StepRecord, 'kind'>) => kind === 'skill' || kind === 'generate';

function addTo(inner: Records['inner'], parent: number, record: StepRecord): void {
  const within = inner.get(parent);
  if (within === undefined) inner.set(parent, [record]);
  else within.push(record);
}

/** Marks a step as running. The records within a called skill become pending. */
export function markRunning(records: Records, n: number): void {
  const { pending, inner } = records;
  pending.delete(n);
  const within = inner.get(n) ?? [];
  for (const record of within) pending.set(record.n, record);
  addEnds(records, within);
  inner.delete(n);
}

/**
 * The record of a request; undefined if there is none. Throws where another request is on record in its place.
 */
export function findRecord(
  records: Records,
  kind: RecordedKind,
  request: StepPlace,
): StepRecord | undefined {
  const known = records.byKey.get(request.key);
  if (known === undefined) return undefined;
  if (known.kind !== kind) {
    const difference = `it is on record as ${nameOf(known.kind)}, and the code asks for ${nameOf(kind)}`;
    throw diverged(known, request.nth, difference);
  }
  if (!isCall(known)) requireSameInput(known, request);
  return known;
}

function requireSameInput(known: StepRecord, { nth, digest }: StepPlace): void {
  const [recorded, now] = [known.digest ?? '', digest ?? ''];
  if (wholeDigest(recorded) === wholeDigest(now)) return;
  throw diverged(
    known,
    nth,
    `the code asks for it with other input: ${differenceOf(recorded, now)}`,
  );
}

/**
 * Whether a failed step stays failed: in the attempt in which it failed, and where the code went on after
 * it, because what it did then is on record. A called skill does so in its attempt alone. What failed while
 * its run was being stopped is of no attempt: the same attempt may begin anew.
 */
export function isFinalFailure({ last }: Records, record: StepRecord, attempt: number): boolean {
  if (record.status !== 'failed') return false;
  return record.attempt === attempt || last > (record.seen_to ?? last);
}

/** Takes the number of a new step; throws beyond the bound. */
export function numberAfter(counter: { next: number }): number {
  if (counter.next > stepsMax) {
    throw new JournalFault('skill_execution_failed', `a job may take ${stepsMax} steps`);
  }
  return counter.next++;
}

/** Counts the bytes of a result; throws beyond the bound. */
export function countBytes(records: Records, result: string): void {
  records.bytes += Buffer.byteLength(result);
  if (records.bytes > bytesMax) {
    const message = `the results of a job's steps may have ${bytesMax / 2 ** 20} MiB in all`;
    throw new JournalFault('skill_execution_failed', message);
  }
}

/** The first record that the run has not requested, as the reason for which it failed; undefined if none. */
export function unrequestedFault({ pending }: Records): JournalFault | undefined {
  const [first] = [...pending.values()].sort((a, b) => a.n - b.n);
  if (first === undefined) return undefined;
  const same = isCall(first) ? ' with the same input' : '';
  const difference = `${nameOf(first.kind)} is on record, and the code did not ask for it${same}`;
  return diverged(first, first.nth, difference);
}

function diverged({ name, n }: StepRecord, nth: number, difference: string): JournalFault {
  const place = `"${name}", occurrence ${nth} (step ${n} of the job)`;
  const message = `The code of the run no longer fits what the job has on record: ${place}: ${difference}`;
  return new JournalFault('replay_diverged', message);
}

const names: Readonly<Record<RecordedKind, string>> = {
  step: 'a step',
  skill: 'a called skill',
  generate: 'a request to a model',
  sleep: 'a sleep',
  event: 'a wait for an event',
  approval: 'an approval',
  run: 'a child run',
  provider: 'a wait for a provider',
};

function nameOf(kind: RecordedKind): string {
  return names[kind];
}
