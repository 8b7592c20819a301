/**
 * The journal of one claim of a job: each action of its run is on record before and after it happens, and a
 * recorded action is not repeated. Steps and waits of the run's code are here; the calls of models and their
 * tools are further kinds of steps of the same claim (`src/core/thinking/generations.ts`). A wait is on record before the
 * run waits, with its deadline. It ends once, by compare-and-set on its row: here when its deadline has passed,
 * elsewhere when its event, decision or child job comes.
 */
import type { WaitKind } from '../../adapters/database/tables.ts';
import { inputDigestOf } from '../../kernel/input-digest.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { OpenClaim } from './claim-writes.ts';
import {
  type BegunStep,
  type EndingStep,
  endOnRecord,
  findInserted,
  nextStep,
  type StepEnd,
  type StepRequest,
} from './journal-steps.ts';
import { endRecord } from './record-queries.ts';
import { countBytes, findRecord, isFinalFailure, markRunning, type StepRecord } from './records.ts';
import { insertSteps, restartStep } from './step-queries.ts';
import { activeStep } from './step-rows.ts';
import type { WaitKinds, WaitResult } from './wait-kinds.ts';
import { endWaitingSteps, listWaiting } from './wait-queries.ts';
import type { OpenWait, WaitEnd, WaitRequest } from './waits.ts';

export class Journal extends OpenClaim {
  /** The ends of waits that were open when the claim read its records, as of the first question. */
  #openEnds: Promise<ReadonlyMap<number, WaitEnd>> | undefined;

  /**
   * Begins a step, unless its end is on record. `admit` rejects where it may not run now; what is on record
   * is given all the same.
   */
  async beginStep(request: StepRequest, admit: () => Promise<void>): Promise<BegunStep> {
    const { job, clock } = this;
    const { key, kind, name, parent, digest, nth } = request;
    const records = await this.records();
    const known = findRecord(records, kind, request);
    if (known !== undefined) {
      if (known.status === 'completed' || isFinalFailure(records, known, job.attempt)) {
        const recorded = await endOnRecord(this, known);
        records.pending.delete(known.n);
        return { n: known.n, recorded, after: 0 };
      }
      await admit();
      await this.write((tx) => restartStep(tx, job, known.n, clock.now()));
      records.byKey.set(key, { ...known, status: 'active' });
      markRunning(records, known.n);
      // If it has failed before, the code asks for the ends that followed only after this one.
      return { n: known.n, recorded: undefined, after: known.told ?? Number.POSITIVE_INFINITY };
    }
    await admit();
    const n = await nextStep(this);
    await this.write(async (tx, isRepeat) => {
      if (isRepeat && (await findInserted(this, key, tx)) !== undefined) return;
      const step = { n, kind, generation: key, parent, turn: nth, name, digest };
      await insertSteps(tx, [activeStep(job, { ...step, started_at: clock.now() })]);
    });
    const none = { attempt: null, seen_to: null, told: null, due_at: null };
    records.byKey.set(key, { n, kind, name, nth, parent, status: 'active', digest, ...none });
    return { n, recorded: undefined, after: Number.POSITIVE_INFINITY };
  }

  /** Ends a step. Returns the time of its end. */
  async endStep({ key, kind, n, place }: EndingStep, end: StepEnd): Promise<number> {
    const { job, clock } = this;
    const records = await this.records();
    const counter = await this.numbers();
    const isCompleted = 'result' in end;
    if (isCompleted) countBytes(records, end.result);
    const status = isCompleted ? 'completed' : 'failed';
    const attempt = isCompleted || end.wasStopped !== true ? job.attempt : null;
    const seen_to = kind === 'step' && !isCompleted ? counter.next - 1 : null;
    const now = clock.now();
    await this.write((tx) =>
      endRecord(tx, {
        job_id: job.id,
        n,
        status,
        result: isCompleted ? end.result : null,
        memory: isCompleted && end.memory.length > 0 ? JSON.stringify(end.memory) : null,
        error: isCompleted ? null : JSON.stringify(end.error),
        attempt,
        seen_to,
        told: place,
        now,
      }),
    );
    const known = records.byKey.get(key);
    if (known !== undefined) records.byKey.set(key, { ...known, status, attempt, seen_to });
    return now;
  }

  /** Records the place of an end that was on record before the run got it. */
  recordPlace(n: number, place: number): void {
    this.places.set(n, place);
  }

  /** Begins a wait, or finds it on record: its end, or the wait as long as it is open. */
  async beginWait(
    kinds: WaitKinds,
    request: WaitRequest,
  ): Promise<{ readonly n: number; readonly end: WaitEnd } | OpenWait> {
    const { job, clock } = this;
    const { key, kind, name, parent, nth, payload } = request;
    this.hasWaits = true;
    const verbs = kinds.get(kind);
    if (verbs === undefined) throw permanentError(`a run may not wait for ${JSON.stringify(kind)}`);
    const records = await this.records();
    const now = clock.now();
    const { input, dueAt } = verbs.read(payload, job, now);
    const digest = inputDigestOf(input);
    const known = findRecord(records, kind, { ...request, digest });
    if (known !== undefined) {
      const found = await this.#findWait(kinds, known);
      records.pending.delete(known.n);
      return found;
    }
    const n = await nextStep(this);
    const hasEnded = await this.write(async (tx, isRepeat) => {
      const inserted = isRepeat ? await findInserted(this, key, tx) : undefined;
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
    if (hasEnded) return { n, end: await this.#endOfWait(begun, true) };
    return { n, kind, name, parent, dueAt, isOnRecord: false };
  }

  /** The ends of those of the waits that have ended, by number; ends those whose deadline has passed. */
  async endsOfWaits(kinds: WaitKinds, waits: readonly OpenWait[]): Promise<Map<number, WaitEnd>> {
    const { job, database } = this;
    const ends = await this.#expireWaits(kinds, waits);
    const others = waits.filter(({ n }) => !ends.has(n));
    if (others.length === 0) return ends;
    const open = new Set((await listWaiting(database.read, { job_id: job.id })).map(({ n }) => n));
    for (const one of others)
      if (!open.has(one.n)) ends.set(one.n, await this.#endOfWait(one, true));
    return ends;
  }

  /** Ends the open ones of the waits whose deadline has passed; how, by number. */
  async #expireWaits(kinds: WaitKinds, waits: readonly OpenWait[]): Promise<Map<number, WaitEnd>> {
    const { job, clock } = this;
    const now = clock.now();
    const due = waits.filter(({ dueAt }) => dueAt <= now);
    if (due.length === 0) return new Map();
    // The claim keeps others from ending them until the transaction ends.
    return this.write(async (tx) => {
      const expired: { job_id: string; n: number; result: WaitResult }[] = [];
      const open = new Set((await listWaiting(tx, { job_id: job.id })).map(({ n }) => n));
      for (const { n, kind, name } of due) {
        const result = open.has(n)
          ? await kinds.get(kind)?.expire(tx, { job, n, name }, now)
          : null;
        if (result) expired.push({ job_id: job.id, n, result });
      }
      await endWaitingSteps(tx, expired, now);
      return new Map(expired.map(({ n, result }) => [n, { ...result, at: now, place: null }]));
    });
  }

  /** A wait on record: its end, or the wait while it is open and before its deadline. */
  async #findWait(
    kinds: WaitKinds,
    known: StepRecord,
  ): Promise<{ readonly n: number; readonly end: WaitEnd } | OpenWait> {
    const { n } = known;
    if (known.status !== 'waiting') return { n, end: await this.#endOfWait(known, false) };
    const end = (await this.#endsOfOpen(kinds)).get(n);
    return end === undefined ? openWait(known) : { n, end };
  }

  /** Reads all of them together, so that it takes as many statements for a thousand as for one. */
  #endsOfOpen(kinds: WaitKinds): Promise<ReadonlyMap<number, WaitEnd>> {
    if (this.#openEnds !== undefined) return this.#openEnds;
    const ends = this.records().then(({ byKey }) => {
      const open = [...byKey.values()].filter(({ status }) => status === 'waiting');
      return this.endsOfWaits(kinds, open.map(openWait));
    });
    this.#openEnds = ends;
    ends.catch(() => {
      this.#openEnds = undefined;
    });
    return ends;
  }

  /** `isNew` if it has ended after the claim read its record. */
  async #endOfWait(step: Pick<StepRecord, 'n' | 'parent'>, isNew: boolean): Promise<WaitEnd> {
    const end = await endOnRecord(this, step);
    if ('error' in end) return end;
    // Results that others record meanwhile count as soon as the run gets them.
    if (isNew) countBytes(await this.records(), end.result);
    return {
      value: (JSON.parse(end.result) as { value: unknown }).value,
      at: end.at,
      place: end.place,
    };
  }
}

function openWait({ n, kind, name, parent, due_at }: StepRecord): OpenWait {
  return { n, kind: kind as WaitKind, name, parent, dueAt: due_at ?? 0, isOnRecord: true };
}
