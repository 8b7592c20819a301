/**
 * Places: what work takes at gates, and gives back. A job gets its places as it is accepted, or as it is claimed where it became
 * due later; else the gate holds it, and no claim reads it. Its places go in the transaction in which it leaves the queue or its
 * claim ends, for whatever reason, so no crash leaks one. A place that is free goes in the same transaction to the next job or
 * call that waits, going round over organizations, and the job is announced, so no process polls. What is missed, such as a limit
 * that was raised, the sweep makes up for. Work without limits pays nothing for any of this. It has more than 300 lines because
 * every way in which a place is taken or given back has to be read together.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import { newId } from '../../kernel/ids.ts';
import type { Context } from '../context/context.ts';
import { type SkillRegistry, skillKey } from '../skills/registry.ts';
import { GateSettings } from './gate-settings.ts';
import {
  type Gate,
  type GatedWork,
  gatesOf,
  lowerPriorityOf,
  type Passing,
  passGates,
  placeOf,
  placesOf,
} from './gates.ts';
import { type ClaimedJob, inIdOrder } from './jobs.store.ts';
import {
  closeGate,
  countPlaces,
  findGates,
  findHeldOrganization,
  forgetPlaces,
  forgetPlacesOfCall,
  giveToCall,
  holdAt,
  letGo,
  listGatedWorks,
  listGates,
  listGatesOfJobs,
  listPlacesOfCall,
  listPlacesOfJobs,
  lockGates,
  markAllGated,
  markGated,
  openGates,
  setTurn,
  usesOf,
} from './places.store.ts';
import { sendHint } from './queues.ts';
import type { RunningJobs } from './running-jobs.ts';

/** Turns of one gate in one transaction, and jobs of one turn: more than one only where many places are free. */
const turnsMax = 64;
const ofTurnMax = 64;
/** Transactions in which a changed limit lets jobs go; the sweep goes on with the others. */
const roundsMax = 50;
/** Gates that one sweep reads; the next one goes on behind them. */
const gatesMax = 500;

/** A skill that a run calls. */
interface CallOfRun {
  readonly claim: Pick<ClaimedJob, 'id' | 'epoch' | 'organization_id' | 'gated'>;
  /** The number of the step. */
  readonly n: number;
  readonly gates: readonly Gate[];
}

type Gated = { readonly id: string; readonly gated: number };
const noGates: readonly Gate[] = [];
const namesOf = (works: readonly Passing[]) => [
  ...new Set(works.flatMap(({ gates }) => gates.map(({ name }) => name))),
];

export class Places {
  readonly #context: Context;
  readonly #skills: SkillRegistry;
  readonly #running: RunningJobs;
  /** The limits and pauses that operators set. */
  readonly settings: GateSettings;
  /** The gate behind which the next sweep goes on. */
  #after = '';

  constructor(context: Context, skills: SkillRegistry, running: RunningJobs) {
    this.#context = context;
    this.#skills = skills;
    this.#running = running;
    this.settings = new GateSettings(context);
  }

  /** The gates of work; none for most. */
  gatesOf(work: GatedWork): readonly Gate[] {
    if (!this.areAny()) return noGates;
    const { limits } = this.#skills;
    const ofSkill = limits.get(skillKey(work.skill_category, work.skill_version, work.skill_name));
    const gates = this.settings.gatesOf(work);
    return ofSkill === undefined ? gates : [...gates, ...gatesOf(ofSkill, work)];
  }

  /** Whether any work has gates. */
  areAny(): boolean {
    return this.#skills.limits.size > 0 || this.settings.byName.size > 0;
  }

  /** The skills that have limits: `category/version/name`. */
  limitedSkills(): readonly string[] {
    return [...this.#skills.limits.keys()];
  }

  /** Locks the gates of new jobs, and those at which earlier ones have places, before the transaction changes any count. */
  async lockGatesOf(
    tx: Transaction,
    made: readonly GatedWork[],
    earlier: readonly Gated[],
  ): Promise<void> {
    const ids = earlier.filter(({ gated }) => gated === 1).map(({ id }) => id);
    const places = ids.length === 0 ? [] : await listGatesOfJobs(tx, { ids });
    const names = made.flatMap((work) => this.gatesOf(work).map(({ name }) => name));
    await lockGates(tx, [...new Set([...names, ...places.map(({ gate }) => gate)])]);
  }

  /** Takes places for jobs that are being accepted; at which gate each of the others is to be held, by id. */
  async accept(
    tx: Transaction,
    works: readonly (Passing & { readonly organization_id: string })[],
  ): Promise<ReadonlyMap<string, string>> {
    const names = namesOf(works);
    await lockGates(tx, names);
    const { passed, held } = passGates(works, await usesOf(tx, names));
    await this.#take(tx, passed, new Map(works.map((work) => [work.id, work.organization_id])));
    await openGates(tx, [...new Set(held.map(({ gate }) => gate))]);
    return new Map(held.map(({ id, gate }) => [id, gate]));
  }

  /**
   * Of jobs of limited skills whose turn it is, those that may begin, for `claimed`. The others are held. The transaction
   * locks their gates.
   */
  async admit(tx: Transaction, ids: readonly string[]) {
    const rows = await listGatedWorks(tx, { ids, skills: this.limitedSkills() });
    if (rows.length === 0) return { passed: [], held: new Set<string>(), rows };
    const inTurn = rows.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
    const works = inTurn.map((row) => ({ id: row.id, gates: this.gatesOf(row) }));
    const names = namesOf(works);
    await lockGates(tx, names);
    const own = await listPlacesOfJobs(tx, { ids: rows.map(({ id }) => id) });
    const owned = new Set(own.map(({ gate, job_id }) => placeOf(gate, job_id)));
    const { passed, held } = passGates(works, await usesOf(tx, names), owned);
    const byGate = Map.groupBy(held, ({ gate }) => gate);
    for (const [gate, jobs] of byGate)
      await holdAt(
        tx,
        gate,
        jobs.map(({ id }) => id),
      );
    await openGates(tx, [...byGate.keys()]);
    const heldIds = new Set(held.map(({ id }) => id));
    const left = own.filter(({ job_id }) => heldIds.has(job_id)).map(({ job_id }) => job_id);
    if (left.length > 0) await this.#giveUp(tx, left);
    return { passed, held: heldIds, rows };
  }

  /** Takes the places of admitted jobs that were claimed. */
  async claimed(
    tx: Transaction,
    passed: readonly Passing[],
    claimed: readonly { readonly id: string; gated: number; readonly organization_id: string }[],
  ): Promise<void> {
    const byId = new Map(claimed.map((job) => [job.id, job.organization_id]));
    await this.#take(
      tx,
      passed.filter(({ id }) => byId.has(id)),
      byId,
    );
    const unmarked = claimed.filter(({ gated }) => gated === 0);
    if (unmarked.length === 0) return;
    await markAllGated(
      tx,
      unmarked.map(({ id }) => id),
    );
    for (const job of unmarked) job.gated = 1;
  }

  /** Gives back the places of jobs that have left the queue, or whose claim has ended, to others that wait. */
  async release(tx: Transaction, jobs: readonly Gated[]): Promise<void> {
    const ids = jobs.filter(({ gated }) => gated === 1).map(({ id }) => id);
    if (ids.length > 0) await this.#giveUp(tx, ids);
  }

  /**
   * Takes the places of a call, or records at which gate it waits. Whether it has them; null where the claim no longer holds
   * its job.
   */
  takeForCall({ claim, n, gates }: CallOfRun): Promise<boolean | null> {
    claim.gated = 1;
    return this.#context.database.write(async (tx) => {
      if ((await markGated(tx, claim)) === undefined) return null;
      const names = gates.map(({ name }) => name);
      await lockGates(tx, names);
      const own = await listPlacesOfCall(tx, { job_id: claim.id, n });
      if (own.some(({ is_held }) => is_held === 0)) return false;
      const owned = new Set(own.map(({ gate }) => placeOf(gate, claim.id)));
      const { passed, held } = passGates([{ id: claim.id, gates }], await usesOf(tx, names), owned);
      const [full] = held;
      if (full === undefined) {
        await this.#take(tx, passed, new Map([[claim.id, claim.organization_id]]), n);
        return true;
      }
      const place = { gate: full.gate, job_id: claim.id, n, is_held: 0, since: newId() };
      await tx.insert('places', [{ ...place, organization_id: claim.organization_id }]);
      await openGates(tx, [full.gate]);
      return false;
    });
  }

  /** Gives back the places of a call that has ended, unless the claim no longer holds its job. */
  releaseCall(claim: CallOfRun['claim'], n: number): Promise<void> {
    const call = { job_id: claim.id, n };
    return this.#context.database.write(async (tx) => {
      if ((await markGated(tx, claim)) === undefined) return;
      const gates = (await listPlacesOfCall(tx, call)).map(({ gate }) => gate);
      await lockGates(tx, gates);
      await forgetPlacesOfCall(tx, call);
      for (const gate of gates) await this.passOn(tx, gate);
    });
  }

  /** Passes on places that are free while work waits: after limits were raised, or where a job could not be locked. */
  async sweep(): Promise<void> {
    const { database } = this.#context;
    const gates = await listGates(database.read, { after: this.#after, limit: gatesMax });
    this.#after = gates.length < gatesMax ? '' : (gates.at(-1)?.name ?? '');
    for (const { name } of gates) {
      const [use] = await countPlaces(database.read, { names: [name] });
      if (Number(use?.taken ?? 0) < this.#limitOf(name)) await this.#passOnNow(name);
    }
  }

  /** Sets how many places a gate has, null for any number; lets go what may begin now. */
  async setPlaces(name: string, places: number | null): Promise<void> {
    await this.settings.set(name, places);
    let rounds = 0;
    while (rounds < roundsMax && (await this.#passOnNow(name))) rounds += 1;
  }

  #passOnNow(name: string): Promise<boolean> {
    return this.#context.database.write(async (tx) => {
      await lockGates(tx, [name]);
      return this.passOn(tx, name);
    });
  }

  #limitOf(name: string): number {
    return placesOf(name, this.#skills.limits, this.settings.byName);
  }

  /** Passes on the free places of a gate, which the transaction has locked. Whether it may have left some. */
  async passOn(tx: Transaction, name: string): Promise<boolean> {
    const [gate] = await findGates(tx, { names: [name] });
    if (gate === undefined) return false;
    const [use] = await countPlaces(tx, { names: [name] });
    let free = this.#limitOf(name) - Number(use?.taken ?? 0);
    let turn = Number(gate.turn);
    let last = gate.last_organization;
    let turns = 0;
    for (; free > 0 && turns < turnsMax; turns++) {
      turn += 1;
      const passed = await this.#next(tx, name, { turn, last, free });
      if (passed === null) break;
      free -= passed.count;
      last = passed.organizationId;
    }
    await setTurn(tx, { name, turn, last_organization: last });
    if (free > 0) await closeGate(tx, name);
    return turns === turnsMax;
  }

  /** Passes places to a call, or to jobs of the next organization; null where nothing waits. Calls have every second turn. */
  async #next(
    tx: Transaction,
    name: string,
    { turn, last, free }: { readonly turn: number; readonly last: string; readonly free: number },
  ): Promise<{ readonly count: number; readonly organizationId: string } | null> {
    if (turn % 2 === 1) {
      return (await this.#nextCall(tx, name, last)) ?? this.#nextJobs(tx, name, turn, last, free);
    }
    return (await this.#nextJobs(tx, name, turn, last, free)) ?? this.#nextCall(tx, name, last);
  }

  async #nextCall(tx: Transaction, name: string, last: string) {
    const call = await giveToCall(tx, name);
    if (call === undefined) return null;
    tx.afterCommit(() => this.#running.wake(call.job_id));
    return { count: 1, organizationId: last };
  }

  async #nextJobs(tx: Transaction, name: string, turn: number, last: string, free: number) {
    const next =
      (await findHeldOrganization(tx, { gate: name, after: last })) ??
      (await findHeldOrganization(tx, { gate: name, after: '' }));
    if (next === undefined) return null;
    const { organization_id } = next;
    const limit = Math.max(1, Math.min(ofTurnMax, Math.floor(free / 8)));
    const ofGate = { gate: name, organization_id, limit };
    let jobs: Awaited<ReturnType<typeof letGo>> = [];
    const lower = lowerPriorityOf(turn);
    if (lower !== null) jobs = await letGo(tx, { ...ofGate, priority: lower, limit: 1 });
    if (jobs.length === 0) jobs = await letGo(tx, { ...ofGate, priority: 0 });
    // A gate without a limit gives no places.
    const gates = free === Number.POSITIVE_INFINITY ? [] : [{ name, limit: free }];
    const passed = jobs.map(({ id }) => ({ id, gates }));
    await this.#take(tx, passed, new Map(jobs.map((job) => [job.id, job.organization_id])));
    const { queue, clock } = this.#context;
    tx.afterCommit(() => {
      for (const job of jobs.toSorted(inIdOrder))
        sendHint(queue, job, `${job.epoch}-place-${clock.now()}-${turn}`);
    });
    return { count: jobs.length, organizationId: organization_id };
  }

  /** Gives up the places of jobs, and passes them on. */
  async #giveUp(tx: Transaction, ids: readonly string[]): Promise<void> {
    const gates = (await listGatesOfJobs(tx, { ids })).map(({ gate }) => gate);
    if (gates.length === 0) return;
    await lockGates(tx, gates);
    await forgetPlaces(tx, ids);
    for (const gate of gates) await this.passOn(tx, gate);
  }

  async #take(
    tx: Transaction,
    passed: readonly Passing[],
    organizations: ReadonlyMap<string, string>,
    n = 0,
  ): Promise<void> {
    const rows = passed.flatMap(({ id, gates }) =>
      gates.map(({ name }) => ({
        gate: name,
        job_id: id,
        n,
        organization_id: organizations.get(id) ?? '',
        is_held: 1,
        since: newId(),
      })),
    );
    if (rows.length > 0) await tx.insert('places', rows);
  }
}
