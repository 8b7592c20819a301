/**
 * The patience of a generation with providers that do not serve it: a turn that no model answers waits, as a run waits for
 * an approval, and asks again, until the time that its agent allows has passed. The waits of a turn are on record, so a
 * run that goes on in another process waits no longer than the rest.
 */
import { ModelError } from '../../../adapters/models/model.ts';
import { partsOfModel } from '../../../adapters/models/providers.ts';
import { delayAfter } from '../../../kernel/backoff.ts';
import { journalOf, yieldSlot } from '../../jobs/runs/attempt.ts';
import { waitsOf } from '../../jobs/runs/run-waits.ts';
import { providerWaitInWords } from '../../journal/provider-waits.ts';
import { heldKey } from '../../journal/records.ts';
import type { WaitKindVerbs } from '../../journal/wait-kinds.ts';
import { ProviderBusyError } from '../../paces/busy-error.ts';
import { type ActiveGeneration, log } from '../attempt.ts';
import { stopped, ThinkingError } from '../thinking-error.ts';
import { loadableMs, waitName } from './paced-calls.ts';
import { findProviderWait } from './patience.store.ts';
import { pause } from './pause.ts';

/** Where the provider does not say when to come back, and at least where it says so again and again. */
const backoff = { baseMs: 5_000, maxMs: 60_000 };
/** Calls that are not expected ask again in a time that grows by this to the most: else all would do so at once. */
const spread = { stepMs: 30_000, maxMs: 300_000 };

export class Patience {
  /** How long a turn may wait; 0 to fail at once. */
  readonly ms: number;
  /** The turn that waits, or has waited. */
  turn = 0;
  /** When its time has passed; null before it has waited. */
  until: number | null = null;
  /** Waits of the turn on record. */
  recorded = 0;
  /** For how long the turn has waited with the run loaded. */
  loadedMs = 0;
  /** Rounds of the turn in which no model answered. */
  rounds = 0;
  /** What a provider said when it did not serve a call of the turn. */
  refusal: { readonly provider: string; readonly said: string } | null = null;
  /** The model that the turn waits for. */
  model: string | null = null;

  constructor(seconds: number) {
    this.ms = seconds * 1_000;
  }
}

/**
 * Asks the models of a turn until one has answered. Rejects with the ModelError of the last round where it does not wait,
 * and with a ThinkingError once the time has passed. The slot of the run serves another one meanwhile.
 */
export async function askPatiently<Answer>(
  active: ActiveGeneration,
  turn: number,
  ready: Promise<unknown>,
  ask: () => Promise<Answer>,
): Promise<Answer> {
  await beginTurn(active, turn);
  for (;;) {
    const resume = yieldSlot(active.attempt.run);
    try {
      return await ask();
    } catch (error) {
      const isWaitedFor = error instanceof ModelError && error.fault === 'unavailable';
      if (!isWaitedFor || active.generation.patience.ms === 0) throw error;
      // What the turn before has recorded must be on record before the run may be unloaded.
      await ready;
      await waitFor(active, error);
    } finally {
      resume();
    }
  }
}

/** Finds the waits of a turn that earlier claims have recorded. */
async function beginTurn(active: ActiveGeneration, turn: number): Promise<void> {
  const { attempt, generation } = active;
  const { patience, id } = generation;
  if (patience.turn === turn) return;
  Object.assign(patience, {
    turn,
    until: null,
    recorded: 0,
    loadedMs: 0,
    rounds: 0,
    refusal: null,
  });
  const { job } = attempt.run;
  if (job.epoch === 1) return;
  const { byKey } = await journalOf(attempt.run).records();
  let last = byKey.get(keyOf(id, turn, 1));
  if (last === undefined) return;
  const { read } = attempt.parts.context.database;
  const wait = await findProviderWait(read, { job_id: job.id, key: keyOf(id, turn, 1) });
  patience.until = Number(wait?.started_at ?? 0) + patience.ms;
  for (let nth = 1; ; nth++) {
    const next = byKey.get(keyOf(id, turn, nth));
    if (next === undefined) break;
    last = next;
    patience.recorded = nth;
  }
  patience.rounds = patience.recorded;
  // The run may go on for another reason, such as a wait of its code that has ended.
  if (last.status === 'waiting') await waitOn(active, { name: last.name, at: last.due_at ?? 0 });
}

async function waitFor(active: ActiveGeneration, failure: ModelError): Promise<void> {
  const { attempt, generation } = active;
  const { patience, call } = generation;
  const { clock } = attempt.parts.context;
  const now = clock.now();
  patience.until ??= now + patience.ms;
  // Of several models the error is the cause of one that says what all of them said.
  const busy = [failure, failure.cause].find((one) => one instanceof ProviderBusyError);
  if (now >= patience.until) throw impatient(failure, patience);
  patience.rounds += 1;
  const delayMs = delayOf(failure, busy, patience.rounds);
  // Due times are whole milliseconds; paces have parts of them.
  const at = Math.ceil(Math.min(now + delayMs, patience.until));
  const { provider } = partsOfModel(patience.model ?? call.model);
  const isLimited = failure.isRateLimited;
  const name = waitName(provider, isLimited ? 'rate limit' : 'unavailable');
  log(attempt, `Waits for ${providerWaitInWords(name, at)}`);
  if (at - now <= loadableMs(active)) {
    patience.loadedMs += at - now;
    return pause(at - now, call.signal);
  }
  patience.recorded += 1;
  await waitOn(active, { name, at });
}

/** How long a turn waits after a round in which no model answered. */
function delayOf(
  { retryAfterMs }: ModelError,
  busy: ProviderBusyError | undefined,
  round: number,
): number {
  if (retryAfterMs === null) return delayAfter(backoff, round);
  if (busy?.isExpected) return retryAfterMs;
  if (busy !== undefined)
    return retryAfterMs + Math.random() * Math.min(spread.maxMs, spread.stepMs * round);
  return round === 1 ? retryAfterMs : Math.max(retryAfterMs, delayAfter(backoff, round - 1));
}

/** Waits for the last of the turn's waits that is on record, or records it. The run may be unloaded meanwhile. */
async function waitOn(
  { attempt, generation, scope }: ActiveGeneration,
  { name, at }: { readonly name: string; readonly at: number },
): Promise<void> {
  const { patience, call, id, parent } = generation;
  const nth = patience.recorded;
  const key = keyOf(id, patience.turn, nth);
  const request = { key, kind: 'provider', name, nth, parent, payload: { at } } as const;
  try {
    await waitsOf(attempt.run).wait(request, scope, call.signal);
  } catch (error) {
    if (call.signal.aborted) throw stopped();
    throw error;
  }
}

function impatient({ message }: ModelError, { ms }: Patience): ThinkingError {
  const waited = `the run has waited ${ms / 1_000} s for an answer, as long as wait_for_provider allows`;
  return new ThinkingError('upstream_unavailable', `${message}; ${waited}`);
}

/** A run that goes on need not wait again: what it asks for may have changed. */
const keyOf = (generation: string, turn: number, nth: number) =>
  heldKey(`provider ${generation} ${turn} ${nth}`);

/** The wait itself: it ends at its moment. */
export const providerWaits: WaitKindVerbs = {
  read: ({ at }) => ({ input: null, dueAt: at as number }),
  begin: async () => null,
  expire: async () => ({ value: null }),
  abandon: async () => {},
};
