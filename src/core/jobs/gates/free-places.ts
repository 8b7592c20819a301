/**
 * Free places: what a gate gives to the next work that waits there. Organizations have their turns one after the other, and in
 * each the calls of runs or the jobs begin. A job or a call gets the places of all its gates at once, or none: where another gate
 * is full it waits there instead. So nothing holds one place while it waits for another. A job that is let go is announced, to
 * this process where it has a slot for it, and a call is answered, so no process polls. It has more than 300 lines because a turn reads as one piece.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { Context } from '../../context/context.ts';
import { inIdOrder } from '../jobs.store.ts';
import { queueOf, sendHint } from '../queues.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import type { JobRunners } from '../turns/runner.ts';
import { forgetPassedOver } from './aged-works.store.ts';
import type { AgedWorks } from './aged-works.ts';
import type { GateLimits } from './gate-limits.ts';
import { lockGates, tryLockGates } from './gate-locks.ts';
import type { GateUses } from './gate-uses.ts';
import {
  isTurnOfCalls,
  lowerPriorityOf,
  type Passing,
  passGates,
  turnsOfHighest,
} from './gates.ts';
import { listHeld, moveHeld } from './held-jobs.store.ts';
import {
  closeGate,
  findGates,
  findNextCall,
  findNextOrganization,
  forgetPlaces,
  giveToCall,
  listGatesOfJobs,
  listPlacesOfCall,
  moveCall,
  setTurn,
} from './places.store.ts';
import { takePlaces } from './taken-places.ts';

/** Turns of one gate in one transaction, and jobs of one turn: more than one only where many places are free. */
const turnsMax = 64;
const ofTurnMax = 64;
/** Jobs that a turn reads at least: the first ones may need places of gates that are full. Where all do, it reads `ofTurnMax`. */
const readMin = 8;

/** The gates of works, each once. */
export const namesOf = (works: readonly Passing[]) => [
  ...new Set(works.flatMap(({ gates }) => gates.map(({ name }) => name))),
];

type Call = NonNullable<Awaited<ReturnType<typeof findNextCall>>>;

/** One round over the work that waits at a gate. */
interface Round {
  readonly tx: Transaction;
  readonly gate: string;
  /** Places that are free. */
  free: number;
  /** Of the last turn. */
  turn: number;
  organizationId: string;
  /** Whether no other organization waits, so that the turns are one after the other its own. */
  isAlone: boolean;
  /** Organizations to which their turns have given nothing since the last place that was given. */
  readonly unservable: Set<string>;
  /** Whether work was moved to other gates in these turns: what waits behind it may begin. */
  hasMoved: boolean;
  /** Whether the gate has passed over work that still waits. */
  hasPassedOver: boolean;
  /** Gates that other transactions have locked. */
  readonly missed: Set<string>;
}

interface PassOnOptions {
  /** Whether it has been tried with gates that others had locked. */
  readonly isRepeat?: boolean;
  /** The organization behind which the turns go on. */
  readonly last?: string | undefined;
}

export class FreePlaces {
  readonly #context: Context;
  readonly #running: RunningJobs;
  readonly #runners: JobRunners;
  readonly #limits: GateLimits;
  readonly #uses: GateUses;
  readonly #aged: AgedWorks;

  constructor(
    context: Context,
    running: RunningJobs,
    runners: JobRunners,
    limits: GateLimits,
    uses: GateUses,
    aged: AgedWorks,
  ) {
    this.#context = context;
    this.#running = running;
    this.#runners = runners;
    this.#limits = limits;
    this.#uses = uses;
    this.#aged = aged;
  }

  /**
   * Gives up all places of jobs, and passes them on; `last` is the organization behind which the turns go on. Work waits at
   * the gate `heldAt`, which another transaction may have closed.
   */
  async giveUp(
    tx: Transaction,
    ids: readonly string[],
    { heldAt, last }: { readonly heldAt?: string; readonly last?: string } = {},
  ): Promise<void> {
    const places = await listGatesOfJobs(tx, { ids });
    const opened = heldAt === undefined ? [] : [heldAt];
    const gates = [...new Set([...opened, ...places.map(({ gate }) => gate)])];
    if (gates.length === 0) return;
    await lockGates(tx, gates);
    await this.#uses.open(tx, opened);
    await forgetPlaces(tx, ids);
    await this.passOn(tx, gates, { last });
  }

  /** Passes on the free places of a gate, in so many transactions at most while one may have left some. */
  async passOnAll(gate: string, transactionsMax: number): Promise<void> {
    let transactions = 0;
    while (transactions < transactionsMax && (await this.#passOnNow(gate))) transactions += 1;
  }

  /** Passes on the free places of a gate in a transaction of its own. Whether it may have left some. */
  #passOnNow(gate: string, locked: readonly string[] = []): Promise<boolean> {
    return this.#context.database.write(async (tx) => {
      await lockGates(tx, [gate, ...locked]);
      return this.passOn(tx, [gate], { isRepeat: locked.length > 0 });
    });
  }

  /** Passes on the free places of gates, which the transaction has locked. Whether it may have left some. */
  async passOn(
    tx: Transaction,
    names: readonly string[],
    options: PassOnOptions = {},
  ): Promise<boolean> {
    let mayBeLeft = false;
    for (const gate of await findGates(tx, { names }))
      if (await this.#passOn(tx, gate, options)) mayBeLeft = true;
    return mayBeLeft;
  }

  async #passOn(
    tx: Transaction,
    gate: Awaited<ReturnType<typeof findGates>>[number],
    { isRepeat = false, last }: PassOnOptions,
  ): Promise<boolean> {
    const { name } = gate;
    const counts = await this.#uses.mended(tx, name);
    const taken = counts.taken.get(name) ?? 0;
    const limit = this.#limits.placesOf(name);
    const round: Round = {
      tx,
      gate: name,
      free: taken >= limit ? 0 : limit - taken,
      turn: Number(gate.turn),
      organizationId: last ?? gate.last_organization,
      isAlone: false,
      unservable: new Set(),
      hasMoved: false,
      hasPassedOver: counts.passedOver.length > 0,
      missed: new Set(),
    };
    let turns = 0;
    while (round.free > 0 && turns < turnsMax && (await this.#serveAged(round))) turns += 1;
    while (round.free > 0 && turns < turnsMax && (await this.#nextTurn(round))) turns += 1;
    const { free, turn, organizationId, missed } = round;
    if (turns > 0) await setTurn(tx, { name, turn, last_organization: organizationId });
    if (free > 0) await closeGate(tx, name);
    else await this.#uses.watch(tx, [name]);
    if (missed.size > 0 && !isRepeat) {
      // What fails here the sweep makes up for.
      tx.afterCommit(() => void this.#passOnNow(name, [...missed]).catch(() => {}));
    }
    const isCutShort = turns === turnsMax && round.unservable.size < turnsMax;
    return free > 0 && (isCutShort || round.hasMoved);
  }

  /** Begins the work that has waited the longest for places of several gates, or leaves it a place; whether it has begun. */
  async #serveAged(round: Round): Promise<boolean> {
    const { tx, gate, hasPassedOver } = round;
    const work = hasPassedOver ? await this.#aged.oldestAt(tx, gate) : undefined;
    if (work === undefined) return false;
    const others = work.gates.map(({ name }) => name).filter((name) => name !== gate);
    const isLocked = await this.#lock(round, others);
    const outcome = isLocked ? await this.#aged.begin(tx, work, gate) : 'left';
    if (outcome !== 'none') round.free -= 1;
    return outcome === 'begun';
  }

  /** Has the next organization its turn; false where nothing waits, or where no organization has work that may begin. */
  async #nextTurn(round: Round): Promise<boolean> {
    const { tx, gate, organizationId: after } = round;
    const next = await findNextOrganization(tx, { gate, after });
    if (next === undefined || round.unservable.has(next.organization_id)) return false;
    round.turn += 1;
    round.isAlone = next.organization_id === round.organizationId;
    round.organizationId = next.organization_id;
    const hasGiven = await this.#give(round);
    if (hasGiven) {
      round.unservable.clear();
      round.hasMoved = false;
    } else round.unservable.add(next.organization_id);
    return true;
  }

  /** Gives places to the organization whose turn it is; whether it could. */
  async #give(round: Round): Promise<boolean> {
    const { tx, gate, organizationId: organization_id } = round;
    const call = await findNextCall(tx, { gate, organization_id });
    if (call === undefined) return this.#nextJobs(round, round.isAlone);
    return isTurnOfCalls(round.turn)
      ? (await this.#nextCall(round, call)) || (await this.#nextJobs(round))
      : (await this.#nextJobs(round)) || (await this.#nextCall(round, call));
  }

  /** Whether a call of the organization has got the places of all its gates; those before it wait at other gates. */
  async #nextCall(round: Round, first: Call): Promise<boolean> {
    const { tx, gate, organizationId: organization_id } = round;
    let call: Call | undefined = first;
    for (let read = 1; call !== undefined && read <= ofTurnMax; read++) {
      const outcome = await this.#giveTo(round, call, call === first);
      if (outcome !== 'moved') return outcome === 'given';
      call = await findNextCall(tx, { gate, organization_id });
    }
    return false;
  }

  async #giveTo(round: Round, call: Call, isFirst: boolean): Promise<'given' | 'moved' | 'missed'> {
    const { tx, gate, organizationId: organization_id } = round;
    const places = await listPlacesOfCall(tx, call);
    const others = places.map((place) => place.gate).filter((name) => name !== gate);
    if (!(await this.#lock(round, others))) return 'missed';
    const taken = await this.#aged.taken(tx, others);
    const full = others.find((name) => (taken.get(name) ?? 0) >= this.#limits.placesOf(name));
    if (full !== undefined) {
      round.hasMoved = true;
      const gates = [gate, ...others];
      if (isFirst) await this.#aged.passOver(tx, { ...call, organization_id }, gates, full);
      await moveCall(tx, call, full);
      await this.#uses.open(tx, [full]);
      return 'moved';
    }
    await giveToCall(tx, call);
    if (round.hasPassedOver) await forgetPassedOver(tx, [call.job_id], call.n);
    round.free -= 1;
    tx.afterCommit(() => this.#running.wake(call.job_id));
    return 'given';
  }

  /** Whether jobs of the organization go; `takesTurns` where the next turns, too, are of its jobs. */
  async #nextJobs(round: Round, takesTurns = false): Promise<boolean> {
    const most = takesTurns
      ? turnsOfHighest(round.turn, Math.min(ofTurnMax, round.free))
      : Math.max(1, Math.min(ofTurnMax, Math.floor(round.free / 8)));
    const lower = lowerPriorityOf(round.turn);
    if (lower !== null && (await this.#letGo(round, lower, 1))) return true;
    return this.#letGo(round, 0, most);
  }

  /** Lets the first jobs go for which all gates have places; where there are none, those that were read wait at other gates. */
  async #letGo(
    round: Round,
    priority: number,
    most: number,
    limit = Math.max(readMin, most),
  ): Promise<boolean> {
    const { tx, gate, organizationId: organization_id } = round;
    const jobs = await listHeld(tx, { gate, organization_id, priority, limit });
    const works = jobs.map((job) => ({
      id: job.id,
      gates: this.#limits.gatesOf(job).filter(({ name }) => name !== gate),
    }));
    const others = namesOf(works);
    if (!(await this.#lock(round, others))) return false;
    const taken = await this.#aged.taken(tx, others);
    // Work that waits at the others has no turn here.
    const uses = Array.from(
      taken,
      ([name, n]) => [name, { taken: n, isContested: false }] as const,
    );
    const { passed, held } = passGates(works, new Map(uses));
    await this.#passOver(round, works, held[0]);
    if (passed.length === 0) {
      await this.#moveAll(round, held);
      if (jobs.length < limit || limit >= ofTurnMax) return false;
      return this.#letGo(round, priority, most, ofTurnMax);
    }
    const going = passed.slice(0, most);
    const ids = going.map(({ id }) => id);
    const gone = new Set((await moveHeld(tx, { gate, ids, to: null })).map(({ id }) => id));
    if (round.isAlone) round.turn += Math.max(0, gone.size - 1);
    const own = { name: gate, limit: round.free };
    const taking = going
      .filter(({ id }) => gone.has(id))
      .map(({ id, gates }) => ({ id, gates: [own, ...gates] }));
    await takePlaces(tx, taking, new Map(ids.map((id) => [id, organization_id])));
    if (round.hasPassedOver) await forgetPassedOver(tx, ids, 0);
    round.free -= gone.size;
    const { turn } = round;
    tx.afterCommit(() => {
      for (const job of jobs.filter(({ id }) => gone.has(id)).toSorted(inIdOrder))
        this.#announce(job, turn);
    });
    return gone.size > 0;
  }

  /** Announces a job that is due. By way of Redis it began 4 to 14 ms later, of 15 to 29 ms. */
  #announce(job: Awaited<ReturnType<typeof listHeld>>[number], turn: number): void {
    const { queue, clock } = this.#context;
    const runner = this.#runners.get(queueOf(job.trigger_type));
    if (runner?.hasSlotFor(job.organization_id)) runner.announce(job.organization_id);
    else sendHint(queue, job, `${job.epoch}-place-${clock.now()}-${turn}`);
  }

  /** Records that the first job of a turn that lacks a place at another gate is passed over. */
  async #passOver(
    round: Round,
    works: readonly Passing[],
    first: { readonly id: string; readonly gate: string } | undefined,
  ): Promise<void> {
    if (first === undefined) return;
    const { tx, gate, organizationId: organization_id } = round;
    round.hasPassedOver = true;
    const others = works.find(({ id }) => id === first.id)?.gates ?? [];
    const gates = [gate, ...others.map(({ name }) => name)];
    await this.#aged.passOver(tx, { job_id: first.id, n: 0, organization_id }, gates, first.gate);
  }

  /** Moves jobs to the gates that are full. */
  async #moveAll(round: Round, held: ReturnType<typeof passGates>['held']): Promise<void> {
    const { tx, gate } = round;
    const byGate = Map.groupBy(held, (one) => one.gate);
    for (const [to, ofGate] of byGate) {
      const moved = await moveHeld(tx, { gate, ids: ofGate.map(({ id }) => id), to });
      if (moved.length > 0) round.hasMoved = true;
    }
    await this.#uses.open(tx, [...byGate.keys()]);
  }

  /** Locks further gates; false where that would be to wait for another transaction. */
  async #lock({ tx, missed }: Round, names: readonly string[]): Promise<boolean> {
    if (await tryLockGates(tx, names)) return true;
    for (const name of names) missed.add(name);
    return false;
  }
}
