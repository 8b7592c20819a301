/**
 * The paces of all providers: what one call learns of a provider and a credential, the calls of all processes obey. A call
 * keeps to the pace of its model, which refusals teach, and to that of its provider, which has the limits of the operator
 * and outages of the network. What is known is in the database, so it outlives a process. A provider that has refused
 * nothing lately costs no write.
 */
import { Batch } from '../../../adapters/database/batch.ts';
import type { Transaction } from '../../../adapters/database/database.ts';
import type { ModelError } from '../../../adapters/models/model.ts';
import type { MinuteLimits } from '../../../adapters/models/providers.ts';
import { newId } from '../../../kernel/ids.ts';
import { ShortCache } from '../../../kernel/short-cache.ts';
import type { Context } from '../../context/context.ts';
import { ColdStart } from './cold-start.ts';
import {
  answered,
  freshPace,
  isPaced,
  type Pace,
  type PaceReason,
  type Refusal,
  refused,
  spent,
  takeMoment,
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
/** Calls of a second are counted, to estimate what a provider takes, and as many are known. */
const countedMax = 10_000;
const countedMs = 1_000;
const forgetAfterMs = 86_400_000;

type Change = { readonly provider: PacedProvider } & (
  | { readonly kind: 'take'; readonly tokens: number; readonly until: number }
  | { readonly kind: 'refused'; readonly name: string; readonly refusal: Refusal }
  | { readonly kind: 'answered'; readonly begunAt: number }
  | { readonly kind: 'spent'; readonly tokens: number }
);

/** The moment of a call, and why it is not at once. */
interface Moment {
  readonly at: number;
  /** Null where the provider has refused nothing. */
  readonly reason: PaceReason | null;
  /** What the provider said when it refused last; empty where it did not. */
  readonly said: string;
  /** Whether it is this call's alone; else a pace that is learned meanwhile counts. */
  readonly isKept: boolean;
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
  readonly #cache: ShortCache<Pace | null>;
  readonly #changes: Batch<Change, Moment>;
  readonly #own = new Map<string, OwnCalls>();
  /** Names this process among those whose calls a provider refuses. */
  readonly #process = newId();

  constructor(context: Context) {
    const { database, clock, bus } = context;
    this.#context = context;
    this.#cache = new ShortCache(clock, cacheMs, knownMax);
    this.#changes = new Batch(database, (tx, changes) => this.#change(tx, changes));
    bus?.listen('paces', (name) => this.#cache.forget(name));
  }

  /** When a call may begin: a moment that is kept for it, unless that is after `until`. */
  async momentFor(provider: PacedProvider, tokens: number, until: number): Promise<Moment> {
    const { clock } = this.#context;
    if (await this.#isPaced(provider)) {
      return this.#changes.add({ kind: 'take', provider, tokens, until });
    }
    const delayMs = this.#ownOf(provider.model).cold.delay(clock.monotonic());
    return { at: clock.now() + delayMs, reason: null, said: '', isKept: false };
  }

  /** Whether the provider has refused a call since, so that the moment of another one no longer counts. */
  async isOver({ isKept }: Pick<Moment, 'isKept'>, provider: PacedProvider, since: number) {
    const now = this.#context.clock.now();
    for (const name of [provider.model, provider.name]) {
      const { refusedAt, pausedUntil } = (await this.#paceOf(name)) ?? freshPace;
      if (refusedAt > since && (!isKept || pausedUntil > now)) return true;
    }
    return false;
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
    if (tokens !== 0 && provider.limits.tokens !== null)
      await this.#changes.add({ kind: 'spent', provider, tokens });
    const now = this.#context.clock.monotonic();
    if (now - own.answeredAt < answerEveryMs || !(await this.#isPaced(provider))) return;
    own.answeredAt = now;
    await this.#changes.add({ kind: 'answered', provider, begunAt });
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
    // Those before it: its refusal may be noticed late.
    const served = begun.filter((one) => one > monotonic - countedMs && one <= monotonic);
    const observed = (60_000 / countedMs) * served.length;
    const refusal = {
      begunAt,
      isRateLimited,
      retryAfterMs,
      said,
      observed,
      process: this.#process,
    };
    await this.#changes.add({ kind: 'refused', provider, name, refusal });
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
      return row === undefined ? null : (JSON.parse(row.state) as Pace);
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
    const paces = new Map(rows.map(({ name, state }) => [name, JSON.parse(state) as Pace]));
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

/** The paces that a change is about. */
function namesOf(change: Change): string[] {
  const { model, name } = change.provider;
  if (change.kind === 'refused') return [change.name];
  return change.kind === 'spent' ? [name] : [model, name];
}

/** Changes paces. A call takes its moment of both at once, at the later one: else those of a pause would break a limit after it. */
function applied(paces: Map<string, Pace>, change: Change, now: number): Moment {
  const changedAt = (at: number) =>
    namesOf(change).map((name) => {
      const limits = name === change.provider.name ? change.provider.limits : unlimited;
      return { name, ...changed(paces.get(name) ?? freshPace, limits, change, at) };
    });
  const each = changedAt(now);
  const [last] = each.toSorted((a, b) => b.at - a.at);
  const { at = now, pace: { reason, said } = freshPace } = last ?? {};
  if (change.kind !== 'take') for (const { name, pace } of each) paces.set(name, pace);
  else if (at <= change.until) for (const { name, pace } of changedAt(at)) paces.set(name, pace);
  return { at, reason, said, isKept: change.kind === 'take' };
}

/** A pace after a change, and the moment that it gives. */
function changed(pace: Pace, limits: MinuteLimits, change: Change, now: number) {
  switch (change.kind) {
    case 'take':
      return takeMoment(pace, limits, change, now);
    case 'refused':
      return { at: now, pace: refused(pace, change.refusal, now) };
    case 'answered':
      return { at: now, pace: answered(pace, limits, change.begunAt, now) };
    case 'spent':
      return { at: now, pace: spent(pace, limits, change.tokens) };
  }
}
