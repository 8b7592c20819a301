/**
 * The bounds of one attempt's calls of models, however its generations nest: calls in all, calls at a
 * time, tokens. A call is admitted with a permit, which holds a slot and the most tokens that the call may
 * use. So usage can exceed the bound only where a provider counts more tokens than were estimated for a prompt.
 * Waiting calls are admitted first come, first served.
 */
import { bind } from '../../kernel/bind.ts';
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

export type RunBounds = ReturnType<typeof createRunBounds>;

interface Waiter extends Omit<PromiseWithResolvers<Permit>, 'promise'> {
  readonly need: CallNeed;
}

interface BoundsState extends RunLimits {
  /** In the order in which they asked. */
  readonly waiters: Set<Waiter>;
  /** Tokens of calls that have ended. */
  spent: number;
  /** Tokens that calls under way may use. */
  held: number;
  calls: number;
  underWay: number;
}

export function createRunBounds(limits: RunLimits) {
  const state = { ...limits, waiters: new Set<Waiter>(), spent: 0, held: 0, calls: 0, underWay: 0 };
  return bind(state, { count, admit });
}

/** Counts what a call has cost. */
function count(state: BoundsState, { usage, estimated }: CallCost): void {
  state.spent += (usage.prompt ?? 0) + (usage.completion ?? 0) + estimated;
}

/**
 * Resolves when the call may be made. Rejects with a ThinkingError when a bound is reached, or when
 * `signal` aborts first.
 */
async function admit(state: BoundsState, need: CallNeed, signal: AbortSignal): Promise<Permit> {
  if (signal.aborted) throw stopped();
  const { promise, resolve, reject } = Promise.withResolvers<Permit>();
  const waiter: Waiter = { need, resolve, reject };
  const onAbort = () => {
    state.waiters.delete(waiter);
    reject(stopped());
    // The next waiter may need fewer tokens than this one did.
    admitWaiters(state);
  };
  state.waiters.add(waiter);
  signal.addEventListener('abort', onAbort, { once: true });
  admitWaiters(state);
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Admits or refuses waiters in order, up to the first one that has to go on waiting. */
function admitWaiters(state: BoundsState): void {
  for (const waiter of state.waiters) {
    const decision = decide(state, waiter.need);
    if (decision === null) return;
    state.waiters.delete(waiter);
    if (decision instanceof ThinkingError) waiter.reject(decision);
    else waiter.resolve(decision);
  }
}

/** The permit of a call, why there will be none, or null while the call has to wait. */
function decide(state: BoundsState, { prompt, output }: CallNeed): Permit | ThinkingError | null {
  const { tokensMax, callsMax, callsAtATime, spent, held, calls, underWay } = state;
  if (calls >= callsMax) {
    return exceeded(`The run has called models ${callsMax} times, which is the most`);
  }
  const used = `The run has used ${spent} tokens, of at most ${tokensMax}`;
  if (spent >= tokensMax) return exceeded(used);
  const least = prompt + Math.min(output, outputMin);
  if (tokensMax - spent < least) return exceeded(`${used}; the call needs about ${least}`);
  if (underWay >= callsAtATime) return null;
  const left = tokensMax - spent - held;
  if (left >= prompt + output) return begin(state, prompt, output);
  // Calls under way usually use less than they hold.
  return held > 0 ? null : begin(state, prompt, left - prompt);
}

function begin(state: BoundsState, prompt: number, output: number): Permit {
  const reserved = prompt + output;
  let isReleased = false;
  state.calls += 1;
  state.underWay += 1;
  state.held += reserved;
  return {
    output,
    release() {
      if (isReleased) return;
      isReleased = true;
      state.underWay -= 1;
      state.held -= reserved;
      admitWaiters(state);
    },
  };
}

function exceeded(message: string): ThinkingError {
  return new ThinkingError('skill_execution_failed', message);
}
