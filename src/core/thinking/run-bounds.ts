/**
 * The bounds of one attempt's calls of models, however its generations nest: calls in all, calls at a
 * time, tokens. A call is admitted with a permit, which holds a slot and the most tokens that the call may
 * use. So usage can exceed the bound only where a provider counts more tokens than were estimated for a prompt.
 * Waiting calls are admitted first come, first served.
 */
import type { CallCost } from './recorded-generation.ts';
import { stopped, ThinkingError } from './thinking-error.ts';

/** The least tokens of an answer for which a call is made. */
const outputMin = 16;

export interface RunLimits {
  /** Tokens of all calls, estimated where they are not reported. */
  readonly tokensMax: number;
  readonly callsMax: number;
  readonly callsAtATime: number;
}

/** Calls of one attempt, and how many of them are made at a time. */
export const callLimits = { callsMax: 1_000, callsAtATime: 16 };

/** What a call may use, in tokens. */
export interface CallNeed {
  readonly prompt: number;
  /** Most tokens of the answer. */
  readonly output: number;
}

export interface Permit {
  /** Most tokens of the answer: what was asked for, or what the attempt has left. */
  readonly output: number;
  /** Tokens that are held for the call. */
  readonly reserved: number;
}

interface Waiter extends Omit<PromiseWithResolvers<Permit>, 'promise'> {
  readonly need: CallNeed;
}

/** The bounds of one attempt. */
export class RunBounds {
  readonly #limits: RunLimits;
  /** In the order in which they asked. */
  readonly #waiters = new Set<Waiter>();
  /** Tokens of calls that have ended. */
  #spent = 0;
  /** Tokens that calls under way may use. */
  #held = 0;
  #calls = 0;
  #underWay = 0;

  constructor(limits: RunLimits) {
    this.#limits = limits;
  }

  /** A call that cost nothing does not count. */
  forgetCall(): void {
    this.#calls -= 1;
  }

  /** Passes an error on, because of which a call that was admitted is not made. */
  readonly uncounted = (error: unknown): never => {
    this.forgetCall();
    throw error;
  };

  /** Counts what a call has cost. */
  count({ usage, estimated }: CallCost): void {
    this.#spent += (usage.prompt ?? 0) + (usage.completion ?? 0) + estimated;
  }

  /**
   * Resolves when the call may be made. Rejects with a ThinkingError when a bound is reached, or when
   * `signal` aborts first.
   */
  async admit(need: CallNeed, signal: AbortSignal): Promise<Permit> {
    if (signal.aborted) throw stopped();
    const { promise, resolve, reject } = Promise.withResolvers<Permit>();
    const waiter: Waiter = { need, resolve, reject };
    const onAbort = () => {
      this.#waiters.delete(waiter);
      reject(stopped());
      // The next waiter may need fewer tokens than this one did.
      this.#admitWaiters();
    };
    this.#waiters.add(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    this.#admitWaiters();
    try {
      return await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Admits or refuses waiters in order, up to the first one that has to go on waiting. */
  #admitWaiters(): void {
    for (const waiter of this.#waiters) {
      const decision = this.#decide(waiter.need);
      if (decision === null) return;
      this.#waiters.delete(waiter);
      if (decision instanceof ThinkingError) waiter.reject(decision);
      else waiter.resolve(decision);
    }
  }

  /** The permit of a call, why there will be none, or null while the call has to wait. */
  #decide({ prompt, output }: CallNeed): Permit | ThinkingError | null {
    const { tokensMax, callsMax, callsAtATime } = this.#limits;
    const spent = this.#spent;
    const held = this.#held;
    if (this.#calls >= callsMax) {
      return exceeded(`The run has called models ${callsMax} times, which is the most`);
    }
    const used = `The run has used ${spent} tokens, of at most ${tokensMax}`;
    if (spent >= tokensMax) return exceeded(used);
    const least = prompt + Math.min(output, outputMin);
    if (tokensMax - spent < least) return exceeded(`${used}; the call needs about ${least}`);
    if (this.#underWay >= callsAtATime) return null;
    const left = tokensMax - spent - held;
    if (left >= prompt + output) return this.#begin(prompt, output);
    // Calls under way usually use less than they hold.
    return held > 0 ? null : this.#begin(prompt, left - prompt);
  }

  #begin(prompt: number, output: number): Permit {
    const reserved = prompt + output;
    this.#calls += 1;
    this.#underWay += 1;
    this.#held += reserved;
    return { output, reserved };
  }

  /** Frees the slot and the tokens that a permit holds. What the call cost is counted before. */
  release({ reserved }: Permit): void {
    this.#underWay -= 1;
    this.#held -= reserved;
    this.#admitWaiters();
  }
}

function exceeded(message: string): ThinkingError {
  return new ThinkingError('skill_execution_failed', message);
}
