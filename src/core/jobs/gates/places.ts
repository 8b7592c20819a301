/**
 * Places: what work takes at gates, and gives back. A job gets its places as it is accepted, or as it is claimed where it became
 * due later; else the gate holds it, and no claim reads it. Its places go in the transaction in which it leaves the queue or its
 * claim ends, for whatever reason, so no crash leaks one. A place that is free goes in the same transaction to the next job or
 * call that waits (`free-places.ts`). What is missed, such as a limit that was raised, the sweep makes up for. Work without
 * limits pays nothing for any of this.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Context } from '../../context/context.ts';
import type { LimitSettings } from '../../limits/limit-settings.ts';
import type { SkillRegistry } from '../../skills/registry.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import type { JobRunners } from '../turns/runner.ts';
import { AgedWorks } from './aged-works.ts';
import { FreePlaces, namesOf } from './free-places.ts';
import { GateLimits } from './gate-limits.ts';
import { lockGates } from './gate-locks.ts';
import { GateSweep } from './gate-sweep.ts';
import { GateUses } from './gate-uses.ts';
import {
  type Gate,
  type GatedWork,
  type Passing,
  passGates,
  pauseAfterRefusal,
  placeOf,
} from './gates.ts';
import { holdAt, listGatedWorks, markAllGated, markGated } from './held-jobs.store.ts';
import {
  forgetPlacesOfCall,
  handPlacesOver,
  listCalls,
  listGatesOfJobs,
  listPlacesOfCall,
  listPlacesOfJobs,
} from './places.store.ts';
import { isRate } from './rates.ts';
import { takePlaces } from './taken-places.ts';

/** Transactions in which a changed limit lets jobs go; the sweep goes on with the others. */
const roundsMax = 50;

/** A skill that a run calls. */
interface CallOfRun {
  readonly claim: Pick<ClaimedJob, 'id' | 'epoch' | 'organization_id' | 'gated'>;
  /** The number of the step. */
  readonly n: number;
  /** The steps of the calls with places within which it is made. */
  readonly within: readonly number[];
  readonly gates: readonly Gate[];
}

type Gated = { readonly id: string; readonly gated: number };

/** A job that was let go and not claimed, and the new one that takes its place. */
interface Replacement {
  readonly from: Gated;
  readonly to: GatedWork & { readonly id: string };
}

export class Places {
  readonly #context: Context;
  readonly #free: FreePlaces;
  readonly #aged: AgedWorks;
  readonly #sweep: GateSweep;
  /** The limits and pauses that operators set. */
  readonly settings: LimitSettings;
  readonly limits: GateLimits;
  /** How gates stand, with the starts of runs and the pauses that end by themselves. */
  readonly uses: GateUses;

  constructor(
    context: Context,
    skills: SkillRegistry,
    running: RunningJobs,
    runners: JobRunners,
    settings: LimitSettings,
  ) {
    this.#context = context;
    this.settings = settings;
    this.limits = new GateLimits(skills, settings);
    this.uses = new GateUses(context, (gate) => this.#free.passOnAll(gate, roundsMax));
    this.#aged = new AgedWorks(context, running, this.limits, this.uses);
    this.#free = new FreePlaces(context, running, runners, this.limits, this.uses, this.#aged);
    this.#sweep = new GateSweep(context, this.#free, running, this.limits, this.uses);
  }

  /** The rates at which the start of a job counts; none where it goes on after a wait. */
  ratesOf(job: GatedWork & Pick<ClaimedJob, 'gated' | 'resumed_at'>): readonly string[] {
    if (job.gated === 0 || job.resumed_at !== null) return [];
    return this.limits
      .gatesOf(job)
      .map(({ name }) => name)
      .filter(isRate);
  }

  /**
   * Pauses the skills that slow down, of those that a service has refused for so many milliseconds: a skill is
   * `category/version/name`.
   */
  async refused(
    tx: Transaction,
    refusals: readonly { readonly skill: string; readonly ms: number }[],
  ): Promise<void> {
    const slowed = refusals.filter(({ skill }) => this.limits.slowsDown(skill));
    await this.uses.beginPauses(
      tx,
      slowed.map(({ skill, ms }) => ({ name: pauseAfterRefusal(skill), ms })),
    );
  }

  /** The same for a skill that a run has called. */
  async calledRefused(skill: string, ms: number): Promise<void> {
    if (!this.limits.slowsDown(skill)) return;
    await this.#context.database.write((tx) => this.refused(tx, [{ skill, ms }]));
  }

  /** Locks the gates of works, and those at which earlier ones have places, before the transaction changes any count. */
  async lockGatesOf(
    tx: Transaction,
    works: readonly GatedWork[],
    earlier: readonly Gated[],
  ): Promise<void> {
    const ids = earlier.filter(({ gated }) => gated === 1).map(({ id }) => id);
    const places = ids.length === 0 ? [] : await listGatesOfJobs(tx, { ids });
    const names = works.flatMap((work) => this.limits.gatesOf(work).map(({ name }) => name));
    await lockGates(tx, [...new Set([...names, ...places.map(({ gate }) => gate)])]);
  }

  /**
   * Gives the places that jobs have to those that replace them, where these need just the same; the ids of those that have
   * them now. The transaction has locked the gates. Else the place would go to others while its key waits anew.
   */
  async handOver(
    tx: Transaction,
    replacements: readonly Replacement[],
  ): Promise<ReadonlySet<string>> {
    const gated = replacements.filter(({ from }) => from.gated === 1);
    if (gated.length === 0) return new Set();
    const own = await listPlacesOfJobs(tx, { ids: gated.map(({ from }) => from.id) });
    const places = new Set(own.map(({ gate, job_id }) => placeOf(gate, job_id)));
    const counts = Map.groupBy(own, ({ job_id }) => job_id);
    const same = gated.filter(({ from, to }) => {
      const gates = this.limits.gatesOf(to);
      const isSame = gates.every(({ name }) => places.has(placeOf(name, from.id)));
      return isSame && gates.length > 0 && counts.get(from.id)?.length === gates.length;
    });
    await handPlacesOver(
      tx,
      same.map(({ from, to }) => ({ from: from.id, to: to.id })),
    );
    return new Set(same.map(({ to }) => to.id));
  }

  /** Takes places for jobs that are being accepted; at which gate each of the others is to be held, by id. */
  async accept(
    tx: Transaction,
    works: readonly (Passing & { readonly organization_id: string })[],
  ): Promise<ReadonlyMap<string, string>> {
    const names = namesOf(works);
    await lockGates(tx, names);
    const { passed, held } = passGates(works, await this.#aged.usesOf(tx, names));
    await takePlaces(tx, passed, new Map(works.map((work) => [work.id, work.organization_id])));
    await this.uses.open(tx, [...new Set(held.map(({ gate }) => gate))]);
    return new Map(held.map(({ id, gate }) => [id, gate]));
  }

  /**
   * Of jobs of limited skills whose turn it is, those that may begin, for `claimed`, and the ids of those that are held. The
   * transaction locks their gates.
   */
  async admit(tx: Transaction, ids: readonly string[], due_by: number) {
    const held = new Set<string>();
    const rows = await listGatedWorks(tx, { ids, skills: this.limits.limitedSkills(), due_by });
    if (rows.length === 0) return { passed: [], held };
    const inTurn = rows.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
    const works = inTurn.map((row) => ({ id: row.id, gates: this.limits.gatesOf(row) }));
    // Work that has all its places needs no lock: they are taken from it only together with its row, which the claim then skips.
    const letGo = await this.#ownOf(tx, works);
    const isLetGo = ({ id, gates }: Passing) =>
      gates.every(({ name }) => letGo.owned.has(placeOf(name, id)));
    const [going, asking] = [works.filter(isLetGo), works.filter((work) => !isLetGo(work))];
    const passed = going.map(({ id }): Passing => ({ id, gates: [] }));
    if (asking.length === 0) return { passed, held };
    const asked = new Set(asking.map(({ id }) => id));
    const askingRows = rows.filter(({ id }) => asked.has(id));
    const names = namesOf(asking);
    await this.lockGatesOf(tx, askingRows, askingRows);
    // One may have got its places, and its mark, while this transaction waited for the gates.
    const { own, owned } = await this.#ownOf(tx, asking);
    const decided = passGates(asking, await this.#aged.usesOf(tx, names), owned);
    const byGate = Map.groupBy(decided.held, ({ gate }) => gate);
    for (const [gate, jobs] of byGate) {
      const wanted = jobs.map(({ id }) => id);
      // Another process may have claimed some since they were read: those keep their places.
      for (const { id } of await holdAt(tx, { gate, ids: wanted, due_by })) held.add(id);
    }
    await this.uses.open(tx, [...byGate.keys()]);
    const left = own.filter(({ job_id }) => held.has(job_id)).map(({ job_id }) => job_id);
    if (left.length > 0) await this.#free.giveUp(tx, left);
    return { passed: [...passed, ...decided.passed], held };
  }

  /** The places that works have themselves, also as `placeOf` names them. */
  async #ownOf(tx: Transaction, works: readonly Passing[]) {
    const own = await listPlacesOfJobs(tx, { ids: works.map(({ id }) => id) });
    return { own, owned: new Set(own.map(({ gate, job_id }) => placeOf(gate, job_id))) };
  }

  /** Takes the places of admitted jobs that were claimed. */
  async claimed(
    tx: Transaction,
    passed: readonly Passing[],
    claimed: readonly { readonly id: string; gated: number; readonly organization_id: string }[],
  ): Promise<void> {
    const byId = new Map(claimed.map((job) => [job.id, job.organization_id]));
    await takePlaces(
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
    if (ids.length > 0) await this.#free.giveUp(tx, ids);
  }

  /**
   * Takes the places of all gates of a call, or records at which one it waits. Whether it has them; null where the claim no
   * longer holds its job.
   */
  takeForCall({ claim, n, within: around, gates }: CallOfRun): Promise<boolean | null> {
    claim.gated = 1;
    const within = around.join(' ');
    const { id: job_id, organization_id } = claim;
    return this.#context.database.write(async (tx) => {
      if ((await markGated(tx, claim)) === undefined) return null;
      const names = gates.map(({ name }) => name);
      await lockGates(tx, names);
      // An earlier try may have been committed without a confirmation.
      const own = await listPlacesOfCall(tx, { job_id, n });
      if (own.length > 0) return own.every(({ is_held }) => is_held === 1);
      const { passed, held } = passGates(
        [{ id: job_id, gates }],
        await this.#aged.usesOf(tx, names),
      );
      const [full] = held;
      if (full === undefined) {
        await takePlaces(tx, passed, new Map([[job_id, organization_id]]), { n, within });
        return true;
      }
      // It has no place while it waits: two calls that each have the place of the other would wait for ever.
      const call = { job_id, n, organization_id, within_calls: within, since: newId() };
      await tx.insert(
        'places',
        names.map((gate) => ({ gate, is_held: gate === full.gate ? 0 : -1, ...call })),
      );
      await this.uses.open(tx, [full.gate]);
      return false;
    });
  }

  /** The calls of a running job, by the numbers of their steps, and whether each has its places. One that failed is missing. */
  async callsOf(jobId: string): Promise<ReadonlyMap<number, boolean>> {
    const calls = await listCalls(this.#context.database.read, { job_id: jobId });
    return new Map(calls.map(({ n, is_held }) => [n, Number(is_held) === 1]));
  }

  /** Gives back the places of a call that has ended, unless the claim no longer holds its job. */
  releaseCall(claim: CallOfRun['claim'], n: number): Promise<void> {
    const call = { job_id: claim.id, n };
    return this.#context.database.write(async (tx) => {
      if ((await markGated(tx, claim)) === undefined) return;
      const gates = (await listPlacesOfCall(tx, call)).map(({ gate }) => gate);
      await lockGates(tx, gates);
      await forgetPlacesOfCall(tx, call);
      await this.#free.passOn(tx, gates);
    });
  }

  /** Passes on what was missed, and mends what was left. */
  sweep(): Promise<void> {
    return this.#sweep.run();
  }

  /** Sets how many places a gate has, null for any number; lets go what may begin now. */
  async setPlaces(name: string, places: number | null): Promise<void> {
    await this.settings.set(name, places);
    await this.#free.passOnAll(name, roundsMax);
  }
}
