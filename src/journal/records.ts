/**
 * What a claim finds on record of its job: the named steps, the called skills and the waits of earlier
 * claims, by key. Results stay in the database until they are asked for. Counts what the run has not asked
 * for yet, because its code must ask for everything that is on record.
 */
import { type StepKind, waitKinds } from '../database/tables.ts';
import type { RecordedRow } from './record-queries.ts';

/** The code of a run does not fit its record, or a bound is passed. Ends the job, whatever the code does. */
export class JournalFault extends Error {
  readonly code: 'replay_diverged' | 'skill_execution_failed';
  readonly retryable = false;
  constructor(code: JournalFault['code'], message: string) {
    super(message);
    this.name = 'JournalFault';
    this.code = code;
  }
}

/** A step on record. */
export type StepRecord = Pick<
  RecordedRow,
  'n' | 'kind' | 'name' | 'parent' | 'status' | 'digest' | 'attempt' | 'seen_to'
>;

/** An end on record. `told` is its place among the ends that runs of the job were told, null if none was. */
export interface RecordedEnd {
  readonly n: number;
  readonly at: number;
  readonly told: number | null;
}

export interface Records {
  readonly byKey: Map<string, StepRecord>;
  /** The number of the job's last step when the claim began. */
  readonly last: number;
  /** The place of the next end that the run is told. */
  nextEnd: number;
  /** Bytes of all results of the job. */
  bytes: number;
  /** Records that the code has to ask for, and has not yet. */
  readonly pending: Map<number, StepRecord>;
  /** Records within steps that did not complete; they are to be asked for once those run again. */
  readonly inner: Map<number, StepRecord[]>;
}

const isNamed: ReadonlySet<StepKind> = new Set(['step', ...waitKinds]);
const isRecorded: ReadonlySet<string> = new Set(['completed', 'failed', 'waiting']);

export function readRecords(rows: readonly RecordedRow[]): Records {
  const records: Records = {
    byKey: new Map(),
    last: rows.at(-1)?.n ?? 0,
    nextEnd: 1,
    bytes: 0,
    pending: new Map(),
    inner: new Map(),
  };
  for (const row of rows) {
    records.bytes += row.bytes ?? 0;
    records.nextEnd = Math.max(records.nextEnd, (row.told ?? 0) + 1);
    if (row.kind === 'model' || row.kind === 'tool') continue;
    records.byKey.set(row.generation, row);
    if (!isNamed.has(row.kind) || !isRecorded.has(row.status)) continue;
    if (row.parent === null) records.pending.set(row.n, row);
    else records.inner.set(row.parent, [...(records.inner.get(row.parent) ?? []), row]);
  }
  return records;
}

/** Notes that a step runs now: what is on record within it is to be asked for. */
export function noteRunning({ pending, inner }: Records, n: number): void {
  pending.delete(n);
  for (const record of inner.get(n) ?? []) pending.set(record.n, record);
  inner.delete(n);
}

/** Throws where the code asks for something else under a name than is on record. */
export function requireSame(
  record: StepRecord,
  asked: { readonly kind: StepKind; readonly digest: string | null },
): void {
  const { kind, name, n, digest } = record;
  if (kind !== asked.kind) {
    throw diverged(
      record,
      `it is on record as ${nameOf(kind)}, and the code asks for ${nameOf(asked.kind)}`,
    );
  }
  if (isNamed.has(kind) && digest !== asked.digest) {
    throw diverged(
      record,
      `the code asks for it with other input than is on record (step ${n}, ${name})`,
    );
  }
}

/** The first record that the run has not asked for, as the reason for which it failed; undefined if none. */
export function unaskedFault({ pending }: Records): JournalFault | undefined {
  const [first] = [...pending.values()].sort((a, b) => a.n - b.n);
  if (first === undefined) return undefined;
  return diverged(first, `${nameOf(first.kind)} is on record, and the code did not ask for it`);
}

function diverged({ name }: StepRecord, difference: string): JournalFault {
  const message = `The code of the run no longer fits what the job has on record: "${name}": ${difference}`;
  return new JournalFault('replay_diverged', message);
}

const names: Readonly<Record<StepKind, string>> = {
  step: 'a step',
  skill: 'a called skill',
  sleep: 'a sleep',
  event: 'a wait for an event',
  approval: 'an approval',
  run: 'a child run',
  model: 'a call of a model',
  tool: 'a tool',
};

function nameOf(kind: StepKind): string {
  return names[kind];
}
