/**
 * Circles: runs that each have a place and call a skill at whose gate the others have theirs, so that none would go on before its
 * time limit. Pure: which of their calls are to fail, so that the others go on. Each place and each call is visited once.
 */

/** A call that waits at a gate. */
export interface WaitingCall {
  readonly job_id: string;
  readonly n: number;
  readonly gate: string;
  /** The calls of its run within which it was made, as far as they have places. */
  readonly within: readonly number[];
}

/** A place of a job, or of its call with the number `n`. */
export interface TakenPlace {
  readonly gate: string;
  readonly job_id: string;
  readonly n: number;
}

/** A place, and the waiting calls without which its run or its call does not end, with how many of them do not go on. */
interface Held {
  readonly gate: string;
  readonly calls: WaitingCall[];
  stuck: number;
}

const keyOf = (jobId: string, n: number) => `${n} ${jobId}`;

/**
 * The calls to fail: of each circle the latest. `waiting` is in the order in which the calls began to wait, and `places` are all
 * at these gates. A place is given back once all calls within have gone on: of a run all of its calls, of a call those that were
 * made within it.
 */
export function callsToFail(
  waiting: readonly WaitingCall[],
  places: readonly TakenPlace[],
  limitOf: (gate: string) => number,
): WaitingCall[] {
  const circles = new Circles(waiting, places);
  const taken = Map.groupBy(places, ({ gate }) => gate);
  for (const gate of circles.gates()) {
    const ofGate = taken.get(gate) ?? [];
    // What a pause holds goes on when it ends.
    if (ofGate.length === 0 || ofGate.length < limitOf(gate)) circles.moves(gate);
  }
  circles.followPlaces();
  circles.leaveOut();
  const failed: WaitingCall[] = [];
  for (const call of waiting.toReversed()) {
    if (!circles.isInOne(call)) continue;
    failed.push(call);
    circles.end(call.job_id);
  }
  return failed;
}

/** The calls that do not go on, because each waits for places of others that do not. */
class Circles {
  readonly #stuck: Set<WaitingCall>;
  /** Those of them for whose places others wait that do so, too. */
  readonly #wanted: Set<WaitingCall>;
  readonly #callsByGate: ReadonlyMap<string, readonly WaitingCall[]>;
  readonly #callsByJob: ReadonlyMap<string, readonly WaitingCall[]>;
  /** The places of a job, or of its call with a number, by `keyOf`. */
  readonly #held = new Map<string, Held[]>();
  readonly #heldByGate: ReadonlyMap<string, readonly Held[]>;
  /** How many of the wanted calls wait at a gate. */
  readonly #waitersAt = new Map<string, number>();
  readonly #moving = new Set<string>();

  constructor(waiting: readonly WaitingCall[], places: readonly TakenPlace[]) {
    this.#stuck = new Set(waiting);
    this.#wanted = new Set(waiting);
    this.#callsByGate = Map.groupBy(waiting, ({ gate }) => gate);
    this.#callsByJob = Map.groupBy(waiting, ({ job_id }) => job_id);
    for (const { gate, job_id, n } of places) {
      const key = keyOf(job_id, n);
      const held = this.#held.get(key) ?? [];
      held.push({ gate, calls: [], stuck: 0 });
      this.#held.set(key, held);
    }
    this.#heldByGate = Map.groupBy([...this.#held.values()].flat(), ({ gate }) => gate);
    for (const [gate, { length }] of this.#callsByGate) this.#waitersAt.set(gate, length);
    for (const call of waiting) {
      for (const held of this.#around(call)) {
        held.calls.push(call);
        held.stuck += 1;
      }
    }
  }

  gates(): Iterable<string> {
    return this.#callsByGate.keys();
  }

  /** Goes on with the gates of places that no waiting call keeps. */
  followPlaces(): void {
    for (const ofOne of this.#held.values())
      for (const { gate, stuck } of ofOne) if (stuck === 0) this.moves(gate);
  }

  /** The gate gets a free place, so the calls that wait there go on, and with them what waits for their places. */
  moves(gate: string): void {
    const gates = [gate];
    for (let next = gates.pop(); next !== undefined; next = gates.pop()) {
      if (this.#moving.has(next)) continue;
      this.#moving.add(next);
      for (const call of this.#callsByGate.get(next) ?? []) gates.push(...this.#goOn(call));
    }
  }

  /** Leaves out the calls behind circles: nothing waits for their places but others behind. */
  leaveOut(): void {
    for (const call of this.#stuck) if (!this.#isWanted(call)) this.#leaveOut(call);
  }

  isInOne(call: WaitingCall): boolean {
    return this.#wanted.has(call);
  }

  /** All calls of a run end, and give its places back. */
  end(jobId: string): void {
    const gates = (this.#callsByJob.get(jobId) ?? []).flatMap((call) => this.#goOn(call));
    for (const gate of gates) this.moves(gate);
  }

  /** The gates of places that are given back because a call goes on. */
  #goOn(call: WaitingCall): string[] {
    if (!this.#stuck.delete(call)) return [];
    this.#leaveOut(call);
    const free: string[] = [];
    for (const held of this.#around(call)) {
      held.stuck -= 1;
      if (held.stuck === 0) free.push(held.gate);
    }
    return free;
  }

  #leaveOut(call: WaitingCall): void {
    const calls = [call];
    for (let next = calls.pop(); next !== undefined; next = calls.pop()) {
      if (!this.#wanted.delete(next)) continue;
      this.#waitersAt.set(next.gate, (this.#waitersAt.get(next.gate) ?? 0) - 1);
      if (this.#isWaitedAt(next.gate)) continue;
      const around = this.#heldByGate.get(next.gate)?.flatMap((held) => held.calls) ?? [];
      calls.push(...around.filter((one) => this.#wanted.has(one) && !this.#isWanted(one)));
    }
  }

  #isWanted(call: WaitingCall): boolean {
    return this.#around(call).some(({ gate }) => this.#isWaitedAt(gate));
  }

  #isWaitedAt(gate: string): boolean {
    return (this.#waitersAt.get(gate) ?? 0) > 0;
  }

  /** The places of the run and of the calls within which a call was made. */
  #around({ job_id, within }: WaitingCall): Held[] {
    return [0, ...within].flatMap((n) => this.#held.get(keyOf(job_id, n)) ?? []);
  }
}
