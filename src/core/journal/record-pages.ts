/**
 * Reads the recorded steps of a job, in pages that are bounded in rows and in bytes: first all steps without
 * their results, then results as the run requests them, with those of the steps that follow. Each is read
 * once, so a replay takes as many statements as there are pages.
 */
import type { Handle } from '../../adapters/database/database.ts';
import { fittingRows } from '../../adapters/database/page-bytes.ts';
import { listRecords, listResults, type RecordedRow, type ResultRow } from './record-queries.ts';
import type { StepRecord } from './records.ts';
import { thoughtKinds } from './step-rows.ts';

/** Rows of a page. */
const pageRows = 1_000;
/** Bytes of the results of a page beyond those of its first row; no more are kept that were not requested. */
const resultBytesMax = 2 * 1024 * 1024;

/** All steps of a job, in order, without their results. */
export async function readSteps(db: Handle, jobId: string): Promise<RecordedRow[]> {
  const rows: RecordedRow[] = [];
  for (;;) {
    const after = rows.at(-1)?.n ?? 0;
    const page = await listRecords(db, { job_id: jobId, after, limit: pageRows });
    rows.push(...page);
    if (page.length < pageRows) return rows;
  }
}

/** A step that had ended when the claim began. */
interface StepWithResult {
  readonly n: number;
  readonly bytes: number;
}

/** The results of a claim's records. */
export interface Results {
  readonly db: Handle;
  readonly jobId: string;
  /** By part of the run, in order. */
  readonly ended: ReadonlyMap<number | null, readonly StepWithResult[]>;
  /** Steps whose results were read. */
  readonly read: Set<number>;
  /** Those that were not requested yet, by number, and their bytes in all. */
  readonly kept: Map<
    number,
    { readonly row: Promise<ResultRow | undefined>; readonly bytes: number }
  >;
  bytes: number;
}

export function newResults(db: Handle, jobId: string, rows: readonly RecordedRow[]): Results {
  const ended = new Map<number | null, StepWithResult[]>();
  for (const { n, kind, parent, status, size } of rows) {
    if (thoughtKinds.has(kind)) continue;
    if (status !== 'completed' && status !== 'failed') continue;
    const steps = ended.get(parent) ?? [];
    if (steps.length === 0) ended.set(parent, steps);
    steps.push({ n, bytes: Number(size) });
  }
  return { db, jobId, ended, read: new Set(), kept: new Map(), bytes: 0 };
}

/** The row of an ended step. */
export function resultOf(
  results: Results,
  { n, parent }: Pick<StepRecord, 'n' | 'parent'>,
): Promise<ResultRow | undefined> {
  if (!results.kept.has(n)) readPage(results, n, parent);
  const kept = results.kept.get(n);
  if (kept === undefined) throw new Error(`no page has the step ${n}`);
  results.kept.delete(n);
  results.bytes -= kept.bytes;
  return kept.row;
}

/** Reads the result of a step, and of those that follow it in its part as far as they fit. */
function readPage(results: Results, n: number, parent: number | null): void {
  const { db, jobId, ended, read, kept } = results;
  const steps = ended.get(parent) ?? [];
  const start = indexOf(steps, n);
  const unread = start === -1 ? [] : steps.slice(start, start + pageRows);
  const end = unread.findIndex((step) => read.has(step.n));
  const page = end === -1 ? unread : unread.slice(0, end);
  // One that has ended since, or is read again, comes alone.
  const fitting = page.slice(0, fittingRows(page, resultBytesMax - results.bytes));
  const fetched = fitting.length > 0 ? fitting : [{ n, bytes: 0 }];
  const to = fetched.at(-1)?.n ?? n;
  const rows = listResults(db, { job_id: jobId, from: n, to, parent });
  const byNumber = rows.then((all) => new Map(all.map((row) => [row.n, row])));
  for (const step of fetched) {
    const row = byNumber.then((all) => all.get(step.n));
    // A page that could not be read is read again.
    row.catch(() => forget(results, step));
    read.add(step.n);
    kept.set(step.n, { row, bytes: step.bytes });
    results.bytes += step.bytes;
  }
}

function forget(results: Results, { n, bytes }: StepWithResult): void {
  results.read.delete(n);
  if (results.kept.delete(n)) results.bytes -= bytes;
}

/** The index of a step in a list that is ordered by number; -1 if it is not there. */
function indexOf(steps: readonly StepWithResult[], n: number): number {
  let [low, high] = [0, steps.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const at = steps[middle]?.n ?? 0;
    if (at === n) return middle;
    if (at < n) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}
