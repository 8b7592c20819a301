/**
 * The waits of one attempt while its run is loaded: each is answered as soon as it has ended, by its
 * deadline or by another process. When everything that the run does waits, the run is unloaded; from then
 * on the database alone knows its waits.
 */

import { bind } from '../../kernel/bind.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Journal } from '../journal/journal.ts';
import type { WaitKinds } from '../journal/wait-kinds.ts';
import { createWaitScope, type WaitScope } from '../journal/wait-scope.ts';
import type { OpenWait, WaitEnd, WantedWait } from '../journal/waits.ts';
import type { ReplayTurn } from './replay-order.ts';

/** Longest time between two looks at the deadlines. */
const lookEveryMs = 60_000;
/** A run whose next wait ends within this time stays loaded: to load it again takes about as long. */
const soonMs = 100;

/** A run, or a tool in it, that was asked to be unloaded is gone within this time, or has asked something. */
export const unloadMs = 1_000;

/** The answer to a run when a wait has ended; `at` is when that was recorded. */
export interface WaitAnswer {
  readonly value: unknown;
  readonly at: number;
}

interface RunWaitsDeps {
  readonly journal: Pick<Journal, 'beginWait' | 'endsOfWaits'>;
  readonly kinds: WaitKinds;
  readonly clock: Clock;
  /** Asks the executor to unload the run. */
  suspend(): void;
  onError(error: unknown): void;
}

interface Pending extends OpenWait {
  answer(end: WaitEnd): void;
}

interface Waits extends RunWaitsDeps {
  readonly scope: WaitScope;
  readonly pending: Map<number, Pending>;
  /** Ended after the run was asked to be unloaded: the run may not have got the end. */
  readonly untold: Set<number>;
  /** When the run was asked to be unloaded, in monotonic milliseconds; null if it has asked something since. */
  unloadingSince: number | null;
  timer: NodeJS.Timeout | undefined;
  isSuspending: boolean;
  /** The look under way, and whether another one is wanted after it. */
  looking: Promise<void> | undefined;
  isStale: boolean;
  isStopped: boolean;
}

export type RunWaits = ReturnType<typeof createRunWaits>;

export function createRunWaits(deps: RunWaitsDeps) {
  const waits: Waits = {
    ...deps,
    scope: createWaitScope(() => suspendSoon(waits)),
    pending: new Map(),
    untold: new Set(),
    unloadingSince: null,
    timer: undefined,
    isSuspending: false,
    looking: undefined,
    isStale: false,
    isStopped: false,
  };
  const verbs = { wait, look, heard, open, stop };
  return { scope: waits.scope, ...bind(waits, verbs) };
}

/** Waits, within a scope. Settles when the wait ends or the signal aborts; never if the run is unloaded. */
async function wait(
  waits: Waits,
  wanted: WantedWait,
  scope: WaitScope,
  signal: AbortSignal,
  turn?: ReplayTurn,
): Promise<WaitAnswer> {
  const begun = scope.work();
  const ended = Promise.withResolvers<WaitEnd>();
  let close: (() => void) | undefined;
  let n = 0;
  const abort = () => ended.reject(new Error('the run has ended'));
  try {
    const wait = await waits.journal.beginWait(waits.kinds, wanted);
    if ('end' in wait) {
      const { at, told } = wait.end;
      await turn?.recorded({ n: wait.n, at, told });
      return answerOf(wait.end);
    }
    turn?.notRecorded();
    if (signal.aborted) throw new Error('the run has ended');
    signal.addEventListener('abort', abort, { once: true });
    n = wait.n;
    waits.pending.set(n, { ...wait, answer: ended.resolve });
    close = scope.wait();
    schedule(waits);
    // It may have ended while it was not pending yet.
    if (waits.isStale || wait.isOnRecord) void look(waits);
  } finally {
    begun();
  }
  try {
    const end = await ended.promise;
    // The run is not unloaded before it has got the end.
    const telling = scope.work();
    try {
      await turn?.ended(n);
    } finally {
      telling();
    }
    return answerOf(end);
  } finally {
    signal.removeEventListener('abort', abort);
    close();
  }
}

/**
 * Answers the waits that have ended. Calls during a look are one further look. A run that is being unloaded
 * gets no answer: what goes on with it in this process, such as a tool, would be stopped again.
 */
async function look(waits: Waits): Promise<void> {
  waits.isStale = true;
  const { unloadingSince, clock } = waits;
  const leftMs = unloadingSince === null ? 0 : unloadingSince + unloadMs - clock.monotonic();
  if (leftMs > 0) {
    schedule(waits, leftMs, leftMs);
    return;
  }
  waits.looking ??= lookUntilFresh(waits).finally(() => {
    waits.looking = undefined;
    suspendSoon(waits);
  });
  await waits.looking;
}

async function lookUntilFresh(waits: Waits): Promise<void> {
  const { journal, kinds, pending, untold, onError } = waits;
  while (waits.isStale && pending.size > 0 && !waits.isStopped) {
    waits.isStale = false;
    try {
      for (const [n, end] of await journal.endsOfWaits(kinds, [...pending.values()])) {
        const ended = pending.get(n);
        pending.delete(n);
        if (waits.unloadingSince !== null) untold.add(n);
        ended?.answer(end);
      }
    } catch (error) {
      onError(error);
    }
  }
  // A look that failed is not repeated at once.
  schedule(waits, soonMs);
}

/** The run has asked something, so it was not unloaded before. */
function heard(waits: Waits): void {
  waits.untold.clear();
  waits.unloadingSince = null;
  if (waits.isStale && waits.pending.size > 0) void look(waits);
}

/** The waits, by the number of their step, whose ends the run may not have got. */
function open({ pending, untold }: Waits): number[] {
  return [...pending.keys(), ...untold];
}

function stop(waits: Waits): void {
  waits.isStopped = true;
  clearTimeout(waits.timer);
}

/** In a later turn of the event loop, when all that happens in this one is known. */
function suspendSoon(waits: Waits): void {
  if (waits.isSuspending) return;
  waits.isSuspending = true;
  setImmediate(() => {
    waits.isSuspending = false;
    if (waits.looking !== undefined || waits.isStopped) return;
    if (waits.pending.size > 0 && waits.scope.isBlocked() && leftMs(waits) > soonMs) {
      waits.unloadingSince = waits.clock.monotonic();
      waits.suspend();
    }
  });
}

/** Milliseconds to the next deadline; none are left once it has passed. */
function leftMs({ pending, clock }: Waits): number {
  let dueAt = Number.POSITIVE_INFINITY;
  for (const one of pending.values()) dueAt = Math.min(dueAt, one.dueAt);
  return dueAt - clock.now();
}

/** Sets the timer to the next deadline, at least `leastMs` and at most `mostMs` away. */
function schedule(waits: Waits, leastMs = 0, mostMs = lookEveryMs): void {
  clearTimeout(waits.timer);
  if (waits.pending.size === 0 || waits.isStopped) return;
  const ms = Math.max(leastMs, Math.min(leftMs(waits), mostMs));
  waits.timer = setTimeout(() => void look(waits), ms).unref();
}

function answerOf(end: WaitEnd): WaitAnswer {
  if ('value' in end) return { value: end.value, at: end.at };
  const { message, ...more } = end.error;
  throw Object.assign(new Error(message), more, { at: end.at });
}
