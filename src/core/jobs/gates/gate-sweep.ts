/**
 * The sweep of gates, once a second: passes on places that were missed, after a limit was raised or where a row was locked. It
 * takes back places that no claim has used for a while, and ends circles of calls that wait for each other. Each part reads a
 * bounded number of rows and goes on behind them the next time.
 */
import { idFloor } from '../../../kernel/ids.ts';
import type { Context } from '../../context/context.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import { callsToFail, type WaitingCall } from './circles.ts';
import type { FreePlaces } from './free-places.ts';
import type { GateLimits } from './gate-limits.ts';
import { lockGates } from './gate-locks.ts';
import type { GateUses } from './gate-uses.ts';
import { holdAt, lockPutOff } from './held-jobs.store.ts';
import { listUnclaimed, listWaitingCalls, listWaitingCallsOf } from './left-places.store.ts';
import { forgetPlacesOfCall, listGates, listPlacesOfCall, listTaken } from './places.store.ts';

/** Gates, calls, places and jobs of which one sweep reads; the next one goes on behind them. */
const rowsMax = 500;
/** Most places read while following waiting calls; beyond it, deadlocks end at the calls' deadlines. */
const takenMax = 10_000;
/** Transactions in which one sweep passes on the places of a gate. */
const roundsMax = 10;
/** How long a place may be a job's that is not claimed, while work of others waits for it. */
const unclaimedMs = 2_000;
/** How long a call has waited before it may be part of a circle: most waits are shorter. */
const circleMs = 1_000;
/** What was recorded this much later than now was so before the clock was set back: ids of other processes are less ahead. */
const aheadMs = 60_000;

function withNumbers({
  within_calls,
  ...call
}: Awaited<ReturnType<typeof listWaitingCalls>>[number]): WaitingCall {
  return { ...call, within: within_calls.split(' ').filter(Boolean).map(Number) };
}

export class GateSweep {
  readonly #context: Context;
  readonly #free: FreePlaces;
  readonly #running: RunningJobs;
  readonly #limits: GateLimits;
  readonly #uses: GateUses;
  /** Behind which gate and waiting call the next sweep goes on. */
  readonly #after = { gate: '', call: '' };

  constructor(
    context: Context,
    free: FreePlaces,
    running: RunningJobs,
    limits: GateLimits,
    uses: GateUses,
  ) {
    this.#context = context;
    this.#free = free;
    this.#running = running;
    this.#limits = limits;
    this.#uses = uses;
  }

  async run(): Promise<void> {
    await this.#endCircles();
    await this.#uses.starts.forgetPast();
    const { read } = this.#context.database;
    const gates = await listGates(read, { after: this.#after.gate, limit: rowsMax });
    this.#after.gate = gates.length < rowsMax ? '' : (gates.at(-1)?.name ?? '');
    const names = gates.map(({ name }) => name);
    if (names.length === 0) return;
    const { taken, tooLong } = await this.#uses.counts(read, names);
    const isFree = (name: string) =>
      tooLong.includes(name) || (taken.get(name) ?? 0) < this.#limits.placesOf(name);
    for (const name of names) if (isFree(name)) await this.#passOn(name);
    await this.#takeBack(names.filter((name) => !isFree(name)));
  }

  /** Passes on the places of a gate; where this fails the sweep goes on with the others. */
  async #passOn(gate: string): Promise<void> {
    try {
      await this.#free.passOnAll(gate, roundsMax);
    } catch (err) {
      this.#context.log.warn({ err, gate }, 'places of a gate are not passed on');
    }
  }

  /**
   * Holds jobs again that were let go and not claimed, at gates where work of others waits. They keep their rank. Those that are
   * not due give their places up, and ask their gates again when they are.
   */
  async #takeBack(names: readonly string[]): Promise<void> {
    const { database, clock } = this.#context;
    if (names.length === 0) return;
    const due_by = clock.now();
    const before = idFloor(due_by - unclaimedMs);
    const after = idFloor(due_by + aheadMs);
    const limit = rowsMax;
    const rows = await listUnclaimed(database.read, { names, before, after, due_by, limit });
    for (const [gate, places] of Map.groupBy(rows, (one) => one.gate)) {
      const ids = places.map(({ job_id }) => job_id);
      await database.write(async (tx) => {
        const held = await holdAt(tx, { gate, ids, due_by });
        const putOff = await lockPutOff(tx, { ids, due_by });
        const left = new Set([...held, ...putOff].map(({ id }) => id));
        const last = places.findLast(({ job_id }) => left.has(job_id));
        if (last === undefined) return;
        await this.#free.giveUp(tx, [...left], { heldAt: gate, last: last.organization_id });
      });
    }
  }

  /**
   * Fails calls of runs that wait for each other's places. Each sweep begins at further calls, and reads all for which these wait:
   * a circle is found wherever its calls are among thousands that wait.
   */
  async #endCircles(): Promise<void> {
    const { database, clock } = this.#context;
    const before = idFloor(clock.now() - circleMs);
    const after = idFloor(clock.now() + aheadMs);
    const { read } = database;
    const behind = this.#after.call;
    const first = await listWaitingCalls(read, { before, after, behind, limit: rowsMax });
    this.#after.call = first.length < rowsMax ? '' : (first.at(-1)?.since ?? '');
    const waiting = new Map(first.map((call) => [call.since, call]));
    const taken: Awaited<ReturnType<typeof listTaken>> = [];
    const [known, runs] = [new Set<string>(), new Set<string>()];
    let found = first;
    while (found.length > 0) {
      const names = [...new Set(found.map(({ gate }) => gate))].filter((name) => !known.has(name));
      for (const name of names) known.add(name);
      const places = await listTaken(read, { names, limit: takenMax - taken.length });
      taken.push(...places);
      if (taken.length >= takenMax) return;
      const ids = [...new Set(places.map(({ job_id }) => job_id))].filter((id) => !runs.has(id));
      for (const id of ids) runs.add(id);
      found = await listWaitingCallsOf(read, { ids, before, after });
      for (const call of found) waiting.set(call.since, call);
    }
    const calls = [...waiting.values()]
      .toSorted((a, b) => (a.since < b.since ? -1 : 1))
      .map(withNumbers);
    const failed = callsToFail(calls, taken, (gate) => this.#limits.placesOf(gate));
    for (const call of failed) await this.#fail(call);
  }

  /** The call that has no rows any more fails, unless it got its places meanwhile. */
  async #fail({ job_id, n }: WaitingCall): Promise<void> {
    await this.#context.database.write(async (tx) => {
      const gates = (await listPlacesOfCall(tx, { job_id, n })).map(({ gate }) => gate);
      await lockGates(tx, gates);
      const places = await listPlacesOfCall(tx, { job_id, n });
      if (places.every(({ is_held }) => is_held === 1)) return;
      await forgetPlacesOfCall(tx, { job_id, n });
      await this.#free.passOn(tx, gates);
      tx.afterCommit(() => this.#running.wake(job_id));
    });
  }
}
