/**
 * Turns: which due jobs of one queue begin in this process, and how organizations share its slots. Pure: the jobs come from
 * the rows (`turns.store.ts`), and `JobRunner` claims what is picked here. It promises:
 *
 * - Organizations go round: the one that runs the fewest jobs begins the next, among equal ones the one whose last turn was
 *   longest ago. While others wait, none begins a run beyond its share: half of the slots that the others leave free. One of
 *   weight w counts as w organizations: its share is w of w + 1 parts.
 * - Some slots are kept for organizations that run nothing: one for each 16, from a concurrency of 2 on. They come on top of
 *   the concurrency, of which an organization that is alone may use everything.
 * - A run that goes on after it has yielded its slot is not held up. Where it has none by these rules it goes on without one,
 *   takes none from others, and its organization begins nothing until it has.
 * - Within an organization a higher priority goes first, whatever its key; every eighth of its jobs is the oldest one of a
 *   lower priority.
 * - Within a priority, API keys go round; within a key, the job that has been due the longest is first.
 *
 * It has more than 300 lines because the state of the turns and the order of one claim have to be read together.
 */
import { once } from '../../../kernel/once.ts';
import { priorities } from '../../../kernel/priority.ts';
import type { Candidate } from './turns.store.ts';

/** One more slot for each of so many, for organizations that run nothing. */
const slotsPerKept = 16;
/** Every so many jobs of an organization, one of a lower priority begins. */
const lowerEvery = 8;
/** Organizations whose jobs one claim reads. */
const readMax = 32;
/** Of them beyond the free slots: some may have no due job. */
const readSpare = 4;

/** What slots are taken, as an organization finds them. */
export interface SlotUse {
  readonly slots: number;
  /** Slots taken by all organizations. */
  readonly taken: number;
  /** Slots taken by this one. */
  readonly own: number;
  /** Whether jobs of another organization wait for a slot. */
  readonly othersWait: boolean;
  /** Of this one; 1 when it is left out. */
  readonly weight?: number;
}

/** Slots beyond the others in which only organizations begin that run nothing; none beside a single slot, which serializes runs. */
export function keptSlots(slots: number): number {
  return slots === 1 ? 0 : Math.ceil(slots / slotsPerKept);
}

/**
 * Whether an organization may begin one more run. While another one waits, it takes at most half of the slots
 * that the others leave free, with a weight of w at most w of w + 1 parts. So those with endless work get slots by their
 * weights, newcomers find free ones, and no run is interrupted for them.
 */
export function hasFreeShare({ slots, taken, own, othersWait, weight = 1 }: SlotUse): boolean {
  if (own <= 0) return taken < slots + keptSlots(slots);
  return isWithinShare({ slots, taken, own, othersWait, weight });
}

/** Whether one more slot is within the share of an organization; no kept one is. */
function isWithinShare({ slots, taken, own, othersWait, weight = 1 }: SlotUse): boolean {
  if (taken >= slots) return false;
  const leftByOthers = slots - (taken - own);
  return !othersWait || (weight + 1) * (own + 1) <= weight * leftByOthers;
}

/** Whose a job is. */
interface Owner {
  readonly organization_id: string;
  readonly api_key_id: string;
}

/** A job that begins. */
interface Begun extends Owner {
  /** Its place in `priorities`. */
  readonly priority: number;
}

/** A due job, as the rows have it. */
export interface DueJob extends Begun {
  readonly id: string;
  readonly due_at: number;
}

/** What decides about the next turn. */
interface Rank {
  /** Runs. */
  own: number;
  /** How many of them go on without a slot. */
  slotless: number;
  /** The number of the last turn. */
  turn: number;
  weight: number;
}

/** What this process knows of an organization; kept while it runs jobs here, or some wait. */
interface Share extends Rank {
  /** Whether jobs of it may be due. */
  isWaiting: boolean;
  /** Whether that was announced since the last claim began. */
  isAnnounced: boolean;
  /** Jobs that it has begun. */
  begun: number;
  /** Of each priority the API key of the last one: one key's turn in a lower priority must not cost others theirs. */
  keys: readonly string[];
}

/** Of an organization that has begun nothing. */
const noKeys: readonly string[] = priorities.map(() => '');

/** The turns of one queue in this process. */
export class Turns {
  readonly #slots: number;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #shares = new Map<string, Share>();
  /** Whether jobs may begin here as they are accepted. */
  offersSlots = false;
  #taken = 0;
  #waiting = 0;
  #turn = 0;
  /** Slots that a claim under way may fill. */
  #reserved = 0;

  #onGivenBack: () => void = () => {};

  /** `weights` has the present weight of each organization that has another one than 1. */
  constructor(slots: number, weights: ReadonlyMap<string, number> = new Map()) {
    this.#slots = slots;
    this.#weights = weights;
  }

  /** Jobs of the organization may be due. */
  announce(organizationId: string): void {
    const share = this.#shareOf(organizationId);
    if (!share.isWaiting) this.#waiting += 1;
    share.isWaiting = true;
    share.isAnnounced = true;
  }

  /** Its slots: of how many, and how many are taken. */
  use(): { readonly slots: number; readonly kept: number; readonly taken: number } {
    return { slots: this.#slots, kept: keptSlots(this.#slots), taken: this.#taken };
  }

  /** Whether a job of the organization may begin now. */
  hasSlotFor(organizationId: string): boolean {
    const share = this.#shares.get(organizationId);
    const othersWait = this.#waiting > (share?.isWaiting ? 1 : 0);
    return this.#hasPlace(organizationId, share, othersWait);
  }

  /** Whether jobs of the organization may be due. */
  isWaiting(organizationId: string): boolean {
    return this.#shares.get(organizationId)?.isWaiting === true;
  }

  /** Whether jobs may be due that may begin now. */
  mayClaim(): boolean {
    return this.candidates(1).length > 0;
  }

  /**
   * The waiting organizations that may begin a job, those whose turn is next. Where none may while slots are free, those that
   * are held back are read once for each announcement: one that has nothing due any more holds back no other.
   */
  candidates(max = Math.min(readMax, this.#free() + readSpare)): Candidate[] {
    if (this.#waiting === 0 || this.#free() <= 0) return [];
    const found = new FirstOf<[string, Share]>(max, ([, a], [, b]) => inTurn(a, b));
    const heldBack: [string, Share][] = [];
    for (const entry of this.#shares) {
      const [id, { isWaiting }] = entry;
      if (!isWaiting) continue;
      entry[1].weight = this.#weightOf(id);
      if (!found.mayAdd(entry)) continue;
      if (this.hasSlotFor(id)) found.add(entry);
      else heldBack.push(entry);
      if (max === 1 && found.all.length === 1) break;
    }
    const next = found.all.length > 0 ? found.all : toVerify(heldBack).slice(0, max);
    return next.map(([organization_id, { keys, begun }]) => ({
      organization_id,
      after_keys: keys,
      isLowerDue: (begun % lowerEvery) + this.#free() >= lowerEvery,
    }));
  }

  /** A claim of jobs of the candidates begins: how many it may take. Until `endClaim` their slots are offered to none. */
  beginClaim(candidates: readonly Candidate[]): number {
    this.#reserved = this.#free();
    for (const { organization_id } of candidates)
      this.#shareOf(organization_id).isAnnounced = false;
    return this.#reserved;
  }

  /** The order in which due jobs of the candidates begin. */
  round(candidates: readonly Candidate[], due: readonly DueJob[]): Round {
    const shares = candidates.map(({ organization_id }): [string, Share] => [
      organization_id,
      this.#shareOf(organization_id),
    ]);
    const unread = this.#waiting - shares.filter(([, { isWaiting }]) => isWaiting).length;
    return new Round(
      { slots: this.#slots, taken: this.#taken, unread, turn: this.#turn },
      shares,
      due,
    );
  }

  /** The claim has ended; jobs of the organizations in `left` wait on. */
  endClaim(candidates: readonly Candidate[], left: ReadonlySet<string>): void {
    this.#reserved = 0;
    for (const { organization_id } of candidates) {
      const share = this.#shareOf(organization_id);
      const isWaiting = share.isAnnounced || left.has(organization_id);
      if (share.isWaiting && !isWaiting) this.#waiting -= 1;
      share.isWaiting = isWaiting;
      this.#forgetIfIdle(organization_id, share);
    }
  }

  /** A job takes a slot until `end`, and its organization has had a turn. */
  takeSlot({ organization_id, api_key_id, priority }: Begun): void {
    const share = this.#shareOf(organization_id);
    share.own += 1;
    this.#taken += 1;
    this.#turn += 1;
    share.turn = this.#turn;
    share.begun += 1;
    share.keys = share.keys.with(priority, api_key_id);
  }

  /** A job of the organization gives its slot back. */
  end(organizationId: string): void {
    this.#release(organizationId);
  }

  /** The slot of a job that was being accepted is free: its commit has failed. */
  giveBack(organizationId: string): void {
    this.end(organizationId);
    this.#onGivenBack();
  }

  /** Calls `listener` when a slot was given back. */
  whenGivenBack(listener: () => void): void {
    this.#onGivenBack = listener;
  }

  /** Yields the slot of a job; the returned function (resume) takes one back, where one is the organization's. */
  yieldSlot(organizationId: string): () => void {
    this.#release(organizationId);
    return once(() => {
      const share = this.#shareOf(organizationId);
      if (this.#isWithinShare(organizationId, share)) this.#taken += 1;
      else share.slotless += 1;
      share.own += 1;
    });
  }

  /**
   * Those of the jobs, which are being accepted, that begin with it: each takes its slot at once, because a claim may be
   * part of the same commit. None is of an organization of which earlier jobs wait.
   */
  offerSlots<J extends Begun>(jobs: readonly J[]): J[] {
    if (!this.offersSlots) return [];
    return jobs.filter((job) => {
      const share = this.#shares.get(job.organization_id);
      const isNext = !share?.isWaiting;
      const othersWait = this.#waiting > 0;
      if (!isNext || !this.#hasPlace(job.organization_id, share, othersWait, this.#reserved))
        return false;
      this.takeSlot(job);
      return true;
    });
  }

  #hasPlace(id: string, share: Share | undefined, othersWait: boolean, more = 0): boolean {
    if (share !== undefined && share.slotless > 0) return false;
    const [own, weight] = [share?.own ?? 0, this.#weightOf(id)];
    return hasFreeShare({ slots: this.#slots, taken: this.#taken + more, own, othersWait, weight });
  }

  #weightOf(organizationId: string): number {
    return this.#weights.get(organizationId) ?? 1;
  }

  #free(): number {
    return Math.max(0, this.#slots + keptSlots(this.#slots) - this.#taken);
  }

  #isWithinShare(id: string, { own, slotless, isWaiting }: Share): boolean {
    const othersWait = this.#waiting > (isWaiting ? 1 : 0);
    const use = { slots: this.#slots, taken: this.#taken, own: own - slotless };
    return isWithinShare({ ...use, othersWait, weight: this.#weightOf(id) });
  }

  /** A run gives up its slot: to one of its organization that has none, where that is within its share. */
  #release(organizationId: string): void {
    const share = this.#shareOf(organizationId);
    const hadSlot = share.own > share.slotless;
    share.own -= 1;
    if (hadSlot) this.#taken -= 1;
    else share.slotless -= 1;
    if (share.slotless > 0 && this.#isWithinShare(organizationId, share)) {
      share.slotless -= 1;
      this.#taken += 1;
    }
    this.#forgetIfIdle(organizationId, share);
  }

  #shareOf(organizationId: string): Share {
    const known = this.#shares.get(organizationId);
    if (known !== undefined) return known;
    const weight = this.#weightOf(organizationId);
    const idle = { own: 0, slotless: 0, isWaiting: false, isAnnounced: false, turn: 0, begun: 0 };
    const share = { ...idle, keys: noKeys, weight };
    this.#shares.set(organizationId, share);
    return share;
  }

  /** Else one would be kept for each organization that there has ever been. */
  #forgetIfIdle(organizationId: string, { own, isWaiting }: Share): void {
    if (own === 0 && !isWaiting) this.#shares.delete(organizationId);
  }
}

/** The first ones in an order, of many: where thousands of organizations wait, each claim would sort all of them. */
class FirstOf<T> {
  readonly all: T[] = [];
  readonly #max: number;
  readonly #compare: (a: T, b: T) => number;

  constructor(max: number, compare: (a: T, b: T) => number) {
    this.#max = max;
    this.#compare = compare;
  }

  /** Whether one is before the last, or there is room behind that. */
  mayAdd(one: T): boolean {
    return this.all.length < this.#max || this.#compare(one, this.all.at(-1) as T) < 0;
  }

  /** Adds one behind its equals. */
  add(one: T): void {
    const at = this.all.findIndex((other) => this.#compare(one, other) < 0);
    this.all.splice(at === -1 ? this.all.length : at, 0, one);
    if (this.all.length > this.#max) this.all.pop();
  }
}

/** The fewest runs for its weight first, then the longest without a turn. */
const inTurn = (a: Rank, b: Rank) => a.own * b.weight - b.own * a.weight || a.turn - b.turn;

/** Where one of the organizations was announced, all of them, the announced ones first. */
function toVerify(heldBack: readonly [string, Share][]): [string, Share][] {
  if (!heldBack.some(([, { isAnnounced }]) => isAnnounced)) return [];
  return heldBack.toSorted(([, a], [, b]) => Number(b.isAnnounced) - Number(a.isAnnounced));
}

/** An organization in a round. */
interface Turn extends Rank {
  begun: number;
  keys: readonly string[];
  /** By priority, then by key: the jobs that have not begun, the longest due first. */
  readonly levels: Map<string, DueJob[]>[];
  left: number;
  hasLost: boolean;
}

/** The order of one claim. It changes nothing in `Turns`: a transaction may be repeated. */
export class Round {
  readonly #use: { readonly slots: number; taken: number; readonly unread: number; turn: number };
  readonly #turns = new Map<string, Turn>();

  constructor(
    use: { slots: number; taken: number; unread: number; turn: number },
    shares: readonly (readonly [string, Share])[],
    due: readonly DueJob[],
  ) {
    this.#use = { ...use };
    for (const [id, { own, slotless, turn, weight, begun, keys }] of shares) {
      const levels = priorities.map(() => new Map<string, DueJob[]>());
      const rank = { own, slotless, turn, weight };
      this.#turns.set(id, { ...rank, begun, keys, levels, left: 0, hasLost: false });
    }
    for (const job of due) {
      const turn = this.#turns.get(job.organization_id);
      const level = turn?.levels[job.priority];
      if (turn === undefined || level === undefined) continue;
      turn.left += 1;
      const ofKey = level.get(job.api_key_id);
      if (ofKey === undefined) level.set(job.api_key_id, [job]);
      else ofKey.push(job);
    }
  }

  /** The next job that may begin. */
  next(): DueJob | undefined {
    const turn = this.#nextTurn();
    if (turn === undefined) return undefined;
    const job = nextJob(turn);
    turn.left -= 1;
    turn.own += 1;
    turn.begun += 1;
    turn.keys = turn.keys.with(job.priority, job.api_key_id);
    this.#use.taken += 1;
    this.#use.turn += 1;
    turn.turn = this.#use.turn;
    return job;
  }

  /** A job that was picked is another process's: its slot is free. */
  lose({ organization_id }: DueJob): void {
    const turn = this.#turns.get(organization_id);
    if (turn !== undefined) {
      turn.own -= 1;
      turn.hasLost = true;
    }
    this.#use.taken -= 1;
  }

  /** The organizations that have more due jobs, or lost one: the other process may yet give it up. */
  left(): Set<string> {
    const left = [...this.#turns].filter(([, turn]) => turn.left > 0 || turn.hasLost);
    return new Set(left.map(([id]) => id));
  }

  #nextTurn(): Turn | undefined {
    const waiting = [...this.#turns.values()].filter(({ left }) => left > 0);
    const othersWait = this.#use.unread + waiting.length > 1;
    let first: Turn | undefined;
    for (const turn of waiting) {
      if (turn.slotless > 0) continue;
      if (!hasFreeShare({ ...this.#use, own: turn.own, weight: turn.weight, othersWait })) continue;
      if (first === undefined || inTurn(turn, first) < 0) first = turn;
    }
    return first;
  }
}

/** Removes and returns the next job of an organization. */
function nextJob({ levels, begun, keys }: Turn): DueJob {
  const highest = levels.findIndex((level) => level.size > 0);
  const level = levels[highest] as Map<string, DueJob[]>;
  const lower = levels.slice(highest + 1).filter(({ size }) => size > 0);
  if (lower.length > 0 && (begun + 1) % lowerEvery === 0) {
    const heads = lower.flatMap((one) => [...one].map(([of, jobs]) => ({ of, level: one, jobs })));
    const oldest = heads.reduce((a, b) => (dueAt(b.jobs) < dueAt(a.jobs) ? b : a));
    return shift(oldest.level, oldest.of);
  }
  const ofLevel = [...level.keys()].toSorted();
  const after = keys[highest] as string;
  return shift(level, ofLevel.find((one) => one > after) ?? (ofLevel[0] as string));
}

const dueAt = ([first]: readonly DueJob[]) => first?.due_at ?? Number.POSITIVE_INFINITY;

function shift(level: Map<string, DueJob[]>, key: string): DueJob {
  const jobs = level.get(key) as DueJob[];
  const job = jobs.shift() as DueJob;
  if (jobs.length === 0) level.delete(key);
  return job;
}
