/**
 * Aged works: jobs and calls that need several gates and were passed over at their turn, because another of their gates was full,
 * and still wait after `agedMs`. Where work of one limit keeps each of the gates full they would wait for ever, since a work has
 * no place before it has all. So a gate leaves one free place to the oldest of them, and gives it nothing else.
 *
 * Why each of them begins: the first work of a turn that is passed over is recorded, in an order that later records never change.
 * Take the oldest one whose gates are not paused. It is the oldest at all of its gates, so nothing else gets the place that they
 * leave to it. Its first gate has a free place once one run there has ended, and leaves it; from then on its second gate leaves
 * one, and so on. After the last one all have a free place, and it begins. Then the next one is the oldest. No work holds a place
 * meanwhile and the order is one for all gates, so none of them waits for another in a circle.
 *
 * A run that has a place at the last gate may call a skill of an earlier one. That call gets the place;
 * otherwise that run could not end.
 *
 * Gates leave their places one after the other, those of the fewest first (`gates.ts`), so that a gate that many share has no
 * place idle: it is the last one, and the work begins in its free place at once.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import { idFloor, newId } from '../../../kernel/ids.ts';
import type { Context } from '../../context/context.ts';
import { sendHint } from '../queues.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import {
  findCallingHolder,
  findHeldJob,
  forgetPassedOver,
  listPassedOver,
  recordPassedOver,
} from './aged-works.store.ts';
import type { GateLimits } from './gate-limits.ts';
import type { GateUses } from './gate-uses.ts';
import { type Gate, type GateUse, isTimedPause, leavesPlace } from './gates.ts';
import { moveHeld } from './held-jobs.store.ts';
import { findGates, giveToCall, listPlacesOfCall, moveCall } from './places.store.ts';
import { isRate } from './rates.ts';
import { takePlaces } from './taken-places.ts';

/** How long a work has been passed over before a gate leaves it a place; and how soon a full rate has to have one again. */
const agedMs = 30_000;
/** Works of a gate of which the oldest is found. */
const readMax = 16;
/** What was recorded this much later than now was so before the clock was set back. */
const aheadMs = 60_000;

type HeldJob = NonNullable<Awaited<ReturnType<typeof findHeldJob>>>;

interface PassedOver {
  readonly job_id: string;
  /** 0 for a job, else the number of the call. */
  readonly n: number;
  readonly organization_id: string;
}

interface AgedWork extends PassedOver {
  readonly gates: readonly Gate[];
  /** The gate at which it waits. */
  readonly heldAt: string;
  /** Null for a call. */
  readonly job: HeldJob | null;
}

export class AgedWorks {
  readonly #context: Context;
  readonly #running: RunningJobs;
  readonly #limits: GateLimits;
  readonly #uses: GateUses;

  constructor(context: Context, running: RunningJobs, limits: GateLimits, uses: GateUses) {
    this.#context = context;
    this.#running = running;
    this.#limits = limits;
    this.#uses = uses;
  }

  /** How many places of the gates are taken or left to aged works; those without one may be left out. */
  async taken(tx: Transaction, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { taken, passedOver } = await this.#uses.counts(tx, names);
    const counts = new Map(taken);
    for (const name of passedOver) {
      const work = await this.oldestAt(tx, name);
      if (work === undefined) continue;
      const ofWork = await this.#uses.counts(tx, namesOf(work));
      if (await this.#isLeft(tx, work, ofWork.taken, name))
        counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
  }

  /** The same, and whether work waits there, for each of the gates. */
  async usesOf(tx: Transaction, names: readonly string[]): Promise<Map<string, GateUse>> {
    if (names.length === 0) return new Map();
    const taken = await this.taken(tx, names);
    const open = new Set((await findGates(tx, { names })).map(({ name }) => name));
    return new Map(
      names.map((name) => [name, { taken: taken.get(name) ?? 0, isContested: open.has(name) }]),
    );
  }

  /** Records that a turn has passed over a work, unless it waits at a pause. */
  async passOver(
    tx: Transaction,
    work: PassedOver,
    gates: readonly string[],
    full: string,
  ): Promise<void> {
    if (isTimedPause(full) || this.#limits.placesOf(full) === 0) return;
    const { organization_id } = work;
    await recordPassedOver(tx, work, { gates, organization_id, since: newId() });
  }

  /**
   * The oldest aged work of a gate that may begin. Those before it that may not, because they are paused, are forgotten, and age
   * anew once a turn passes them over again: else each search would read them, and where they are many find none behind them.
   */
  async oldestAt(tx: Transaction, gate: string): Promise<AgedWork | undefined> {
    const now = this.#context.clock.now();
    const before = idFloor(now - agedMs);
    const after = idFloor(now + aheadMs);
    for (const row of await listPassedOver(tx, { gate, before, after, limit: readMax })) {
      const work = row.n === 0 ? await this.#job(tx, row) : await this.#call(tx, row);
      if (work !== undefined && (await this.#isStartable(tx, work))) return work;
      await forgetPassedOver(tx, [row.job_id], row.n);
    }
    return undefined;
  }

  /**
   * Begins an aged work where all of its gates, which the transaction has locked, have a free place; else it waits at one that has
   * none. Whether `gate` has given it a place, or leaves it one.
   */
  async begin(tx: Transaction, work: AgedWork, gate: string): Promise<'begun' | 'left' | 'none'> {
    const { job_id } = work;
    const { taken } = await this.#uses.counts(tx, namesOf(work));
    const full = work.gates.find(({ name, limit }) => (taken.get(name) ?? 0) >= limit);
    if (full !== undefined) {
      await this.#waitAt(tx, work, full.name);
      return (await this.#isLeft(tx, work, taken, gate)) ? 'left' : 'none';
    }
    const hasBegun =
      work.job === null ? await this.#give(tx, work) : await this.#letGo(tx, work, work.job);
    // Another transaction has its row: the sweep tries again.
    if (!hasBegun) return 'left';
    await forgetPassedOver(tx, [job_id], work.n);
    return 'begun';
  }

  /** Whether the gate leaves a place to the work, but not against a run that calls a skill there and has a place that it needs. */
  async #isLeft(
    tx: Transaction,
    { gates }: AgedWork,
    taken: ReadonlyMap<string, number>,
    gate: string,
  ): Promise<boolean> {
    if (!leavesPlace(gates, taken, gate)) return false;
    const full = gates.filter(({ name, limit }) => (taken.get(name) ?? 0) >= limit);
    const held = full.map(({ name }) => name);
    return held.length === 0 || (await findCallingHolder(tx, { gate, held })) === undefined;
  }

  /** Not while a gate is paused, nor where a rate has no further start for long: others would wait for nothing. */
  async #isStartable(tx: Transaction, { gates }: AgedWork): Promise<boolean> {
    const names = gates.map(({ name }) => name);
    const { taken } = await this.#uses.counts(tx, names);
    const isPaused = ({ name, limit }: Gate) =>
      limit === 0 || taken.get(name) === Number.POSITIVE_INFINITY;
    if (gates.some(isPaused)) return false;
    const full = gates.filter(({ name, limit }) => isRate(name) && (taken.get(name) ?? 0) >= limit);
    const next = await this.#uses.starts.nextFree(
      tx,
      full.map(({ name }) => name),
    );
    return [...next.values()].every((at) => at <= this.#context.clock.now() + agedMs);
  }

  async #job(
    tx: Transaction,
    { job_id, n, organization_id }: PassedOver,
  ): Promise<AgedWork | undefined> {
    const job = await findHeldJob(tx, { id: job_id });
    if (job === undefined) return undefined;
    const gates = this.#limits.gatesOf(job);
    return { job_id, n, organization_id, gates, heldAt: job.held_by ?? '', job };
  }

  async #call(
    tx: Transaction,
    { job_id, n, organization_id }: PassedOver,
  ): Promise<AgedWork | undefined> {
    const places = await listPlacesOfCall(tx, { job_id, n });
    const at = places.find(({ is_held }) => is_held === 0);
    if (at === undefined) return undefined;
    const gates = places.map(({ gate }) => ({ name: gate, limit: this.#limits.placesOf(gate) }));
    return { job_id, n, organization_id, gates, heldAt: at.gate, job: null };
  }

  async #waitAt(tx: Transaction, work: AgedWork, gate: string): Promise<void> {
    const { job_id, heldAt } = work;
    if (gate === heldAt) return;
    if (work.job === null) await moveCall(tx, work, gate);
    else await moveHeld(tx, { gate: heldAt, ids: [job_id], to: gate });
    await this.#uses.open(tx, [gate]);
  }

  async #give(tx: Transaction, { job_id, n }: AgedWork): Promise<boolean> {
    await giveToCall(tx, { job_id, n });
    tx.afterCommit(() => this.#running.wake(job_id));
    return true;
  }

  async #letGo(
    tx: Transaction,
    { job_id: id, gates, heldAt, organization_id }: AgedWork,
    job: HeldJob,
  ): Promise<boolean> {
    if ((await moveHeld(tx, { gate: heldAt, ids: [id], to: null })).length === 0) return false;
    await takePlaces(tx, [{ id, gates }], new Map([[id, organization_id]]));
    const { queue, clock } = this.#context;
    tx.afterCommit(() => sendHint(queue, job, `${job.epoch}-aged-${clock.now()}`));
    return true;
  }
}

const namesOf = ({ gates }: AgedWork) => gates.map(({ name }) => name);
