/**
 * The paces of all providers: what one call learns of a provider and a credential, the calls of all processes obey. A call
 * keeps to the pace of its model, which refusals teach, and to that of its provider, which has the limits of the operator
 * and outages of the network. What is known is in the database, so it outlives a process. A provider that has refused
 * nothing lately costs no write.
 */
import { Batch } from '../../adapters/database/batch.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import { ModelError, type Usage } from '../../adapters/models/model.ts';
import { newId } from '../../kernel/ids.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import type { Context } from '../context/context.ts';
import { ColdStart } from './cold-start.ts';
import {
  type Asking,
  type LimitedPace,
  spent,
  type Taken,
  type TakenMoment,
  takeMoment,
  type WaitingCall,
} from './moments.ts';
import {
  answered,
  type EndedCall,
  freshPace,
  isPaced,
  knownMs,
  type Pace,
  type PaceReason,
  type Refusal,
  refused,
} from './pace-rule.ts';
import { type PacedProvider, unlimited } from './paced-provider.ts';
import { findPace, forgetPaces, lockPaces, setPaces } from './provider-paces.store.ts';

/** How long a pace is cached; a change of another process is noticed at once where messages arrive. */
const cacheMs = 1_000;
/** Paces that a process knows; the least recent ones go. */
const knownMax = 10_000;
/** Answers of a paced provider that a process records are so far apart. */
const answerEveryMs = 500;
/** Failures in a row, without an answer, from which on a provider counts as unavailable. */
const failuresMin = 3;
/** Calls that are known, to estimate what a provider takes: as many, and those of `knownMs`. */
const countedMax = 10_000;
const forgetAfterMs = 86_400_000;

type Change = { readonly provider: PacedProvider } & (
  | { readonly kind: 'take'; readonly asking: Asking }
  | { readonly kind: 'refused'; readonly name: string; readonly refusal: Refusal }
  | { readonly kind: 'answered'; readonly answer: EndedCall; readonly tokens: number }
);

/** When a call begins or asks again, and why that is not at once. */
interface Moment extends TakenMoment {
  /** Null where the provider has refused nothing. */
  readonly reason: PaceReason | null;
  /** What the provider said when it refused last; empty where it did not. */
  readonly said: string;
}

/** What this process knows of the calls with one pace. */
class OwnCalls {
  readonly cold = new ColdStart();
  /** When the last calls began that were not refused, in monotonic milliseconds. */
  readonly begun: number[] = [];
  /** In a row. */
  failures = 0;
  answeredAt = Number.NEGATIVE_INFINITY;
}

/** A call that may begin, or has. */
interface PacedCall {
  readonly provider: PacedProvider;
  readonly begunAt: number;
  readonly monotonic: number;
}

export class ProviderPaces {
  readonly #context: Context;
  readonly #weights: ReadonlyMap<string, number>;
  readonly #cache: ShortCache<Pace | null>;
  readonly #changes: Batch<Change, Moment>;
  readonly #own = new Map<string, OwnCalls>();
  /** Names this process among those whose calls a provider refuses. */
  readonly #process = newId();

  /** `weights` has those of organizations that have another one than 1. */
  constructor(context: Context, weights: ReadonlyMap<string, number> = new Map()) {
    const { database, clock, bus } = context;
    this.#context = context;
    this.#weights = weights;
    this.#cache = new ShortCache(clock, cacheMs, knownMax);
    this.#changes = new Batch(database, (tx, changes) => this.#change(tx, changes));
    bus?.listen('paces', (name) => this.#cache.forget(name));
  }

  /** When a call may begin, by what its organization and all others ask for. */
  async momentFor(provider: PacedProvider, call: WaitingCall): Promise<Moment> {
    const { clock } = this.#context;
    if (await this.#isPaced(provider)) {
      const { organization } = provider;
      const weight = this.#weights.get(organization) ?? 1;
      const change = {
        kind: 'take',
        provider,
        asking: { ...call, organization, weight },
      } as const;
      return this.#changes.add(change);
    }
    const delayMs = this.#ownOf(provider.model).cold.delay(clock.monotonic());
    return { kind: 'moment', at: clock.now() + delayMs, reason: null, said: '' };
  }

  /** Whether the provider has refused a call since, so that the moment of another one no longer counts. */
  async isOver({ reason }: Moment, provider: PacedProvider, since: number) {
    const now = this.#context.clock.now();
    for (const name of [provider.model, provider.name]) {
      const { refusedAt, pausedUntil } = (await this.#paceOf(name)) ?? freshPace;
      // A moment that was taken without a pace is not this call's alone.
      if (refusedAt > since && (reason === null || pausedUntil > now)) return true;
    }
    return false;
  }

  /**
   * Makes a call, and learns how the provider served it; `booked` are the tokens for which its moment was taken. A failure that
   * is not of the provider teaches nothing.
   */
  async call<Answer extends { readonly usage: Usage }>(
    provider: PacedProvider,
    booked: number,
    make: () => Promise<Answer>,
    isOfProvider: (failure: ModelError) => boolean = () => true,
  ): Promise<Answer> {
    const begun = this.begin(provider);
    const { model } = provider;
    const warn = (err: unknown) =>
      this.#context.log.warn({ err, model }, 'the pace of a provider is not recorded');
    try {
      const answer = await make();
      const { prompt, completion } = answer.usage;
      const isReported = prompt !== null && completion !== null;
      void this.answered(begun, isReported ? prompt + completion - booked : 0).catch(warn);
      return answer;
    } catch (error) {
      if (error instanceof ModelError && error.fault === 'unavailable') {
        // Before the next call asks for its moment.
        if (isOfProvider(error)) await this.failed(begun, error).catch(warn);
      } else if (error instanceof ModelError && error.fault !== 'aborted') {
        void this.answered(begun).catch(warn);
      }
      throw error;
    }
  }

  /** A call begins. */
  begin(provider: PacedProvider): PacedCall {
    const { clock } = this.#context;
    const monotonic = clock.monotonic();
    const { begun } = this.#ownOf(provider.model);
    begun.push(monotonic);
    if (begun.length > countedMax) begun.shift();
    return { provider, begunAt: clock.now(), monotonic };
  }

  /**
   * The provider has answered a call, or refused it for a reason of its own. `tokens` are those that it took beyond the
   * ones that its moment was reserved for, fewer than none where it took less.
   */
  async answered({ provider, begunAt }: PacedCall, tokens = 0): Promise<void> {
    const own = this.#ownOf(provider.model);
    own.failures = 0;
    this.#ownOf(provider.name).failures = 0;
    const isCounted = tokens !== 0 && provider.limits.tokens !== null;
    const now = this.#context.clock.monotonic();
    const isRecent = now - own.answeredAt < answerEveryMs;
    if (!isCounted && (isRecent || !(await this.#isPaced(provider)))) return;
    own.answeredAt = now;
    const answer = this.#ended(provider, begunAt);
    await this.#changes.add({ kind: 'answered', provider, answer, tokens });
  }

  /** The provider did not serve a call. */
  async failed({ provider, begunAt, monotonic }: PacedCall, error: ModelError): Promise<void> {
    const { begun } = this.#ownOf(provider.model);
    const at = begun.indexOf(monotonic);
    if (at >= 0) begun.splice(at, 1);
    const { isRateLimited, retryAfterMs } = error;
    const name = error.wasLost ? provider.name : provider.model;
    const own = this.#ownOf(name);
    own.failures += 1;
    // What was said to one organization concerns no other.
    const said = provider.isShared ? '' : error.message;
    if (!isRateLimited && retryAfterMs === null && own.failures < failuresMin) return;
    const ended = this.#ended(provider, begunAt);
    const refusal = { ...ended, isRateLimited, retryAfterMs, said };
    await this.#changes.add({ kind: 'refused', provider, name, refusal });
  }

  /** An ended call, with the last calls of this process that were not refused. */
  #ended({ model }: PacedProvider, begunAt: number): EndedCall {
    const { clock } = this.#context;
    const now = clock.monotonic();
    const recent = this.#ownOf(model).begun.filter((at) => at > now - knownMs);
    const served = recent.map((at) => clock.now() - now + at);
    return { begunAt, process: this.#process, served };
  }

  async #isPaced({ name, model, limits }: PacedProvider): Promise<boolean> {
    const now = this.#context.clock.now();
    if (isPaced(await this.#paceOf(model), unlimited, now)) return true;
    return isPaced(await this.#paceOf(name), limits, now);
  }

  async #paceOf(name: string): Promise<Pace | null> {
    const known = this.#cache.get(name);
    if (known !== undefined) return known;
    return this.#cache.read(name, async () => {
      const row = await findPace(this.#context.database.read, { name });
      return row === undefined ? null : paceOf(row.state);
    });
  }

  #ownOf(name: string): OwnCalls {
    const known = this.#own.get(name) ?? new OwnCalls();
    // The least recent one is the first.
    this.#own.delete(name);
    this.#own.set(name, known);
    if (this.#own.size > knownMax) this.#own.delete(this.#own.keys().next().value as string);
    return known;
  }

  async #change(tx: Transaction, changes: readonly Change[]): Promise<Moment[]> {
    const { clock, bus } = this.#context;
    const now = clock.now();
    const names = [...new Set(changes.flatMap(namesOf))];
    const rows = await lockPaces(tx, names, JSON.stringify(freshPace), now);
    const before = new Map(rows.map(({ name, state }) => [name, state]));
    const paces = new Map(rows.map(({ name, state }) => [name, paceOf(state)]));
    const moments = changes.map((change) => applied(paces, change, now));
    const rowsAfter = Array.from(paces, ([name, pace]) => ({
      name,
      state: JSON.stringify(pace),
      changed_at: now,
    })).filter(({ name, state }) => before.get(name) !== state);
    await setPaces(tx, rowsAfter);
    const isRefusal = changes.some(({ kind }) => kind === 'refused');
    if (isRefusal) await forgetPaces(tx, now - forgetAfterMs);
    tx.afterCommit(() => {
      for (const name of names) this.#cache.forget(name);
      if (isRefusal) for (const name of names) bus?.send('paces', name);
    });
    return moments;
  }
}

/** Versions before this one keep less of a pace. */
const paceOf = (state: string): Pace => ({ ...freshPace, ...JSON.parse(state) });

/** The paces that a change is about. */
function namesOf(change: Change): string[] {
  const { model, name } = change.provider;
  return change.kind === 'refused' ? [change.name] : [model, name];
}

/** Changes paces; the moment or position that this gives. */
function applied(paces: Map<string, Pace>, change: Change, now: number): Moment {
  const { provider } = change;
  const names = namesOf(change);
  const each = names.map((name) => ({
    pace: paces.get(name) ?? freshPace,
    limits: name === provider.name ? provider.limits : unlimited,
  }));
  const { kind, at, slowest, paces: after } = changed(each, change, now);
  names.forEach((name, i) => {
    paces.set(name, after[i] as Pace);
  });
  return { kind, at, reason: slowest.reason, said: slowest.said };
}

function changed(each: readonly LimitedPace[], change: Change, now: number): Taken {
  if (change.kind === 'take') return takeMoment(each, change.asking, now);
  const { organization } = change.provider;
  const paces = each.map(({ pace, limits }) =>
    change.kind === 'refused'
      ? refused(pace, change.refusal, now)
      : answered(spent(pace, limits, organization, change.tokens), limits, change.answer, now),
  );
  return { kind: 'moment', at: now, slowest: freshPace, paces };
}
