/**
 * The bounds of one attempt's calls of models, however its generations nest: calls in all, calls at a
 * time, tokens. A call is admitted with a permit, which holds a slot and the tokens that the call may
 * use at most. So the tokens used never exceed the bound by more than a provider counts beyond the
 * estimate of a prompt. Calls that have to wait are admitted in the order in which they asked.
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
  /** Frees the slot and the tokens that are held. What the call cost is counted before. */
  release(): void;
}

export interface RunBounds {
  /** Counts what a call has cost. */
  count(cost: CallCost): void;
  /**
   * Resolves when the call may be made. Rejects with a ThinkingError when a bound is reached, or when
   * `signal` aborts first.
   */
  admit(need: CallNeed, signal: AbortSignal): Promise<Permit>;
}

interface Waiter {
  readonly need: CallNeed;
  resolve(permit: Permit): void;
  reject(error: ThinkingError): void;
}

export function createRunBounds({ tokensMax, callsMax, callsAtATime }: RunLimits): RunBounds {
  const waiters = new Set<Waiter>();
  let spent = 0;
  let held = 0;
  let calls = 0;
  let underWay = 0;

  /** The permit of a call, why there will be none, or null while the call has to wait. */
  function decide({ prompt, output }: CallNeed): Permit | ThinkingError | null {
    if (calls >= callsMax) {
      return exceeded(`The run has called models ${callsMax} times, which is the most`);
    }
    const used = `The run has used ${spent} tokens, of at most ${tokensMax}`;
    if (spent >= tokensMax) return exceeded(used);
    const least = prompt + Math.min(output, outputMin);
    if (tokensMax - spent < least) return exceeded(`${used}; the call needs about ${least}`);
    if (underWay >= callsAtATime) return null;
    const left = tokensMax - spent - held;
    if (left >= prompt + output) return begin(prompt, output);
    // Calls under way usually use less than they hold.
    return held > 0 ? null : begin(prompt, left - prompt);
  }

  function begin(prompt: number, output: number): Permit {
    const reserved = prompt + output;
    let isReleased = false;
    calls += 1;
    underWay += 1;
    held += reserved;
    return {
      output,
      release() {
        if (isReleased) return;
        isReleased = true;
        underWay -= 1;
        held -= reserved;
        admitWaiters();
      },
    };
  }

  /** Admits or refuses waiters in order, up to the first one that has to go on waiting. */
  function admitWaiters(): void {
    for (const waiter of waiters) {
      const decision = decide(waiter.need);
      if (decision === null) return;
      if (decision instanceof ThinkingError) waiter.reject(decision);
      else waiter.resolve(decision);
    }
  }

  return {
    count({ usage, estimated }) {
      spent += (usage.prompt ?? 0) + (usage.completion ?? 0) + estimated;
    },

    async admit(need, signal) {
      if (signal.aborted) throw stopped();
      const { promise, resolve, reject } = Promise.withResolvers<Permit>();
      const onAbort = () => {
        waiter.reject(stopped());
        // The next waiter may need fewer tokens than this one did.
        admitWaiters();
      };
      const leave = () => {
        waiters.delete(waiter);
        signal.removeEventListener('abort', onAbort);
      };
      const waiter: Waiter = {
        need,
        resolve(permit) {
          leave();
          resolve(permit);
        },
        reject(error) {
          leave();
          reject(error);
        },
      };
      waiters.add(waiter);
      signal.addEventListener('abort', onAbort, { once: true });
      admitWaiters();
      return promise;
    },
  };
}

function exceeded(message: string): ThinkingError {
  return new ThinkingError('skill_execution_failed', message);
}
