/**
 * The journal of a scripted run: the rows of its steps and waits in memory. They are begun, found and compared by
 * the same rules as those in the database (src/core/journal/journal.ts).
 */
import type {
  BegunStep,
  EndingStep,
  StepEnd,
  StepFailure,
} from '../../core/journal/journal-steps.ts';
import type { RecordedRow } from '../../core/journal/record-queries.ts';
import {
  countBytes,
  findRecord,
  isFinalFailure,
  noteRunning,
  numberAfter,
  type Records,
  readRecords,
  type StepPlace,
} from '../../core/journal/records.ts';
import { deadlineAfter } from '../../core/journal/wait-kinds.ts';
import type { WaitRequest } from '../../core/journal/waits.ts';
import type { MemoryChange } from '../../core/memories/run-memory.ts';
import type { Form } from '../../kernel/form.ts';
import { inputDigestOf } from '../../kernel/input-digest.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import type { ScriptedClock } from './clock.ts';

type Result = { readonly value: unknown } | { readonly error: StepFailure };

/** How a wait is going to end by the script. */
export interface WaitEnding {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly result: Result;
}

/** A row of the journal, with what the database keeps in further columns. */
export interface Row extends Omit<RecordedRow, 'bytes'> {
  bytes: number | null;
  result: string | null;
  error: StepFailure | null;
  memory: readonly MemoryChange[];
  at: number;
  /** Of a wait. */
  ending: WaitEnding | undefined;
}

export interface ScriptedJournal {
  readonly clock: ScriptedClock;
  readonly rows: Row[];
  attempt: number;
  /** What the present pass finds on record. */
  records: Records;
}

export function newJournal(clock: ScriptedClock): ScriptedJournal {
  return { clock, rows: [], attempt: 1, records: readRecords([], 1) };
}

/** Begins a pass: its code has to ask for everything that is on record. */
export function beginPass(journal: ScriptedJournal): void {
  journal.records = readRecords(journal.rows, journal.attempt);
}

/** Begins the next attempt. What the last one left open is interrupted, but for its waits. */
export function beginAttempt(journal: ScriptedJournal): void {
  journal.attempt += 1;
  for (const row of journal.rows) if (row.status === 'active') row.status = 'interrupted';
}

export async function beginStep(
  journal: ScriptedJournal,
  wanted: StepPlace & { readonly kind: 'step' | 'skill' },
): Promise<BegunStep> {
  const { records, attempt } = journal;
  const { kind } = wanted;
  const known = findRecord(records, kind, wanted);
  if (known === undefined) {
    const { n } = addRow(journal, { ...wanted, status: 'active' });
    return { n, recorded: undefined, after: Number.POSITIVE_INFINITY };
  }
  const row = rowOf(journal, known.n);
  if (row.status === 'completed' || isFinalFailure(records, known, attempt)) {
    records.pending.delete(row.n);
    const end = { n: row.n, at: row.at, place: row.told };
    if (row.error !== null) return { n: row.n, recorded: { error: row.error, ...end }, after: 0 };
    const recorded = { result: row.result ?? '{}', memory: row.memory, ...end };
    return { n: row.n, recorded, after: 0 };
  }
  row.status = 'active';
  row.error = null;
  records.byKey.set(wanted.key, { ...known, status: 'active' });
  noteRunning(records, row.n);
  return { n: row.n, recorded: undefined, after: known.told ?? Number.POSITIVE_INFINITY };
}

export async function endStep(
  journal: ScriptedJournal,
  { key, kind, n, place }: EndingStep,
  end: StepEnd,
): Promise<number> {
  const { records, attempt, clock, rows } = journal;
  const row = rowOf(journal, n);
  const isCompleted = 'result' in end;
  if (isCompleted) countBytes(records, end.result);
  row.status = isCompleted ? 'completed' : 'failed';
  row.result = isCompleted ? end.result : null;
  row.bytes = isCompleted ? Buffer.byteLength(end.result) : null;
  row.error = isCompleted ? null : end.error;
  row.memory = isCompleted ? end.memory : [];
  row.attempt = isCompleted || end.wasStopped !== true ? attempt : null;
  row.seen_to = kind === 'step' && !isCompleted ? rows.length : null;
  row.told = place;
  row.at = clock.now();
  const known = records.byKey.get(key);
  const { status, seen_to } = row;
  if (known !== undefined) {
    records.byKey.set(key, { ...known, status, attempt: row.attempt, seen_to });
  }
  return row.at;
}

/**
 * Begins a wait, or finds it on record. `script` says how a new one is going to end; its deadline ends it if
 * that is earlier.
 */
export async function beginWait(
  journal: ScriptedJournal,
  wanted: WaitRequest,
  script: (input: Readonly<Record<string, unknown>>, dueAt: number) => Promise<WaitEnding>,
): Promise<Row> {
  const { records, clock } = journal;
  const { input, dueAt } = await readWait(wanted, clock.now());
  const digest = inputDigestOf(input);
  const known = findRecord(records, wanted.kind, { ...wanted, digest });
  if (known !== undefined) {
    records.pending.delete(known.n);
    return rowOf(journal, known.n);
  }
  const row = addRow(journal, { ...wanted, digest, status: 'waiting', due_at: dueAt });
  row.ending = await script(input, dueAt);
  if (wanted.kind === 'sleep' && row.ending.at <= clock.now()) endWait(journal, row);
  return row;
}

/** Moves the clock to the end of the next wait, and ends all that are over then. */
export function endNextWaits(journal: ScriptedJournal): Row[] {
  const open = journal.rows.filter((row) => row.status === 'waiting');
  const ends = open.map(({ ending }) => ending?.at ?? Number.POSITIVE_INFINITY);
  const next = Math.min(...ends);
  if (!Number.isFinite(next)) return [];
  journal.clock.advanceTo(next);
  const ended = open.filter(({ ending }) => ending !== undefined && ending.at <= next);
  for (const row of ended) endWait(journal, row);
  return ended;
}

/** A request to a model: recorded when it has ended. */
export async function recordGeneration(
  journal: ScriptedJournal,
  asked: StepPlace,
  make: () => Promise<Result>,
): Promise<Result> {
  const { records, attempt, clock } = journal;
  const known = findRecord(records, 'generate', asked);
  const isRecorded = known?.status === 'completed' || known?.attempt === attempt;
  if (known !== undefined && isRecorded) {
    records.pending.delete(known.n);
    return resultOf(rowOf(journal, known.n));
  }
  const row =
    known === undefined
      ? addRow(journal, { ...asked, kind: 'generate', status: 'active' })
      : rowOf(journal, known.n);
  const result = await make();
  setResult(row, result);
  row.attempt = attempt;
  row.at = clock.now();
  return result;
}

/** How a row has ended. */
export function resultOf(row: Row): Result {
  if (row.error !== null) return { error: row.error };
  return { value: (JSON.parse(row.result ?? '{}') as { value?: unknown }).value };
}

function rowOf({ rows }: ScriptedJournal, n: number): Row {
  const row = rows[n - 1];
  if (row === undefined) throw new Error(`there is no step ${n}`);
  return row;
}

type NewRow = StepPlace & Pick<Row, 'kind' | 'status'> & { readonly due_at?: number };

function addRow(journal: ScriptedJournal, wanted: NewRow): Row {
  const { rows, records, clock } = journal;
  const { key, kind, name, nth, parent, digest, status, due_at = null } = wanted;
  const n = numberAfter({ next: rows.length + 1 });
  const none = { attempt: null, seen_to: null, told: null };
  const row: Row = {
    ...{ n, generation: key, kind, name, parent, status, turn: nth, digest, due_at, ...none },
    ...{ bytes: null, size: 0, result: null, error: null, memory: [], at: clock.now() },
    ending: undefined,
  };
  rows.push(row);
  if (kind !== 'model' && kind !== 'tool') {
    records.byKey.set(key, { n, kind, name, nth, parent, status, digest, due_at, ...none });
  }
  return row;
}

function endWait({ clock }: ScriptedJournal, row: Row): void {
  setResult(row, row.ending?.result ?? { value: null });
  row.at = clock.now();
}

function setResult(row: Row, result: Result): void {
  row.status = 'error' in result ? 'failed' : 'completed';
  row.error = 'error' in result ? result.error : null;
  row.result = 'error' in result ? null : JSON.stringify({ value: result.value });
  row.bytes = Buffer.byteLength(row.result ?? '');
}

/** The input of a wait, by which a replay is compared, and its deadline. */
async function readWait(
  { kind, payload }: WaitRequest,
  now: number,
): Promise<{ input: Readonly<Record<string, unknown>>; dueAt: number }> {
  const { ms, until, event, key, title, details = {}, fields, skill, input, timeoutMs } = payload;
  switch (kind) {
    case 'sleep': {
      if (until === undefined) return { input: { ms }, dueAt: deadlineAfter(ms, now) };
      const left = typeof until === 'number' ? Math.max(0, until - now) : until;
      return { input: { until }, dueAt: deadlineAfter(left, now) };
    }
    case 'event':
      return { input: { event, key }, dueAt: deadlineAfter(timeoutMs, now) };
    case 'approval': {
      const form = fields === undefined ? {} : { fields: await formIn(fields) };
      const asked = { title, details, ...form };
      return { input: asked, dueAt: deadlineAfter(timeoutMs, now) };
    }
    case 'run':
      return { input: { skill, input }, dueAt: Number.POSITIVE_INFINITY };
  }
}

async function formIn(fields: unknown): Promise<Form> {
  const { readForm } = await import('../../kernel/form.ts');
  const read = readForm(fields);
  if ('fault' in read) throw permanentError(`the form of an approval ${read.fault}`);
  return read.form;
}
