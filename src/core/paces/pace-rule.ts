/**
 * The pace of calls of one provider, or of one of its models, with one credential. A refusal begins a pause, and where the
 * provider limits a rate it teaches how many calls the provider takes; from then on each call gets a moment of its own. The
 * learned rate rises slowly while no call is refused, so it follows the provider. Pure: time and chance are arguments.
 */
import type { MinuteLimits } from '../../adapters/models/providers.ts';
import { delayAfter } from '../../kernel/backoff.ts';

/** Why a provider is left alone, in words. */
export type PaceReason = 'rate limit' | 'unavailable';

/** What is known of a provider, in milliseconds since the epoch and calls a minute. */
export interface Pace {
  /** No call begins before. */
  readonly pausedUntil: number;
  readonly reason: PaceReason;
  /** What the provider said when it refused last. */
  readonly said: string;
  /** Calls that the provider takes; null where it has refused none. */
  readonly perMinute: number | null;
  /** When the next call may begin, by the rate of calls and by that of tokens. */
  readonly nextAt: number;
  readonly tokensAt: number;
  /** Waves of refusals since the last answer. */
  readonly refusals: number;
  /** Of the last two waves of refusals, and of the last change of the rate. */
  readonly refusedAt: number;
  readonly refusedBefore: number;
  readonly raisedAt: number;
  /** Calls a minute that processes had answered when the first was refused, by process. */
  readonly observed: Readonly<Record<string, number>>;
  /** The end of the time in which those were counted. */
  readonly countedUntil: number;
  /** Of the organizations whose calls have a moment or a position ahead. */
  readonly shares: readonly Share[];
}

/** What an organization has of a pace. */
export interface Share {
  readonly organization: string;
  readonly weight: number;
  /** When its next call has its turn. */
  readonly dueAt: number;
  /** When the last position ends that it has. */
  readonly lineAt: number;
}

export const freshPace: Pace = {
  pausedUntil: 0,
  reason: 'rate limit',
  said: '',
  perMinute: null,
  nextAt: 0,
  tokensAt: 0,
  refusals: 0,
  refusedAt: 0,
  refusedBefore: 0,
  raisedAt: 0,
  observed: {},
  countedUntil: 0,
  shares: [],
};

/** A call that has ended, and what its process knows. */
export interface EndedCall {
  readonly begunAt: number;
  readonly process: string;
  /** When the last calls of the process began that were not refused. */
  readonly served: readonly number[];
}

export interface Refusal extends EndedCall {
  readonly isRateLimited: boolean;
  /** What the provider asks for. */
  readonly retryAfterMs: number | null;
  readonly said: string;
}

export const minuteMs = 60_000;
/** Calls of so long are counted, to estimate what a provider takes; they may arrive in another order than they begin. */
const countedMs = 1_000;
const arrivalMs = 100;
/** A process knows its calls for so long. */
export const knownMs = 10_000;
/** Bounds of a learned rate: of the first estimate, and of what further refusals make of it. */
const estimateMin = 60;
const perMinuteMin = 6;
/** Of an estimate, so that calls that come a little early are not refused. */
const estimateShare = 0.96;
const decrease = { soonMs: 10_000, soon: 0.92, later: 0.95 };
/** The rise of the rate a second, by the seconds since the last refusal. */
const rises = [
  { before: 20, share: 0.008 },
  { before: 60, share: 0.02 },
  { before: Number.POSITIVE_INFINITY, share: 0.1 },
];
/** Characters that are kept of what a provider said. */
const saidMax = 500;
/** The longest time for which one answer raises the rate. */
const risenMaxMs = 5_000;
/** A rate at which nothing was refused for so long is forgotten. */
const forgetAfterMs = 600_000;
/** Pauses where the provider names none; the first one is longer than the second in which calls are counted. */
const pauses = {
  'rate limit': { baseMs: 1_250, maxMs: 60_000 },
  unavailable: { baseMs: 2_000, maxMs: 60_000 },
};
/** At a rate that is known, a call that arrives a little early is refused now and then. */
const earlyMs = 300;
/** After an outage the first calls begin at such intervals, and later ones at shorter ones. */
const probes = { forMs: 10_000, everyMs: 1_000, laterMs: 50 };
/** A moment further ahead was set by a clock that was set back since: providers are left alone for an hour at most. */
const aheadMaxMs = 2 * 3_600_000;
/** The same of a refusal, with what the clocks of two processes may differ. */
const refusedAheadMaxMs = 2_000;

/** Whether calls have to ask for their moment. */
export function isPaced(pace: Pace | null, limits: MinuteLimits, now: number): boolean {
  if (limits.calls !== null || limits.tokens !== null) return true;
  if (pace === null) return false;
  if (now < pace.pausedUntil) return true;
  return now - pace.refusedAt < forgetAfterMs && (pace.perMinute !== null || pace.refusals > 0);
}

/** After an outage a few calls find out whether it is over, and many follow. */
export function probeEveryMs({ pausedUntil }: Pace, at: number): number {
  return at - pausedUntil < probes.forMs ? probes.everyMs : probes.laterMs;
}

/**
 * The pace after a refusal. Calls are of the same wave that had begun before the last one was known, or in its pause: they had
 * got their moments before.
 */
export function refused(pace: Pace, refusal: Refusal, now: number, random = Math.random()): Pace {
  const known = current(pace, now);
  const { begunAt, isRateLimited, retryAfterMs, said } = refusal;
  const isNewWave =
    known.refusals === 0 || (begunAt > known.refusedAt && begunAt >= known.pausedUntil);
  const refusals = known.refusals + Number(isNewWave);
  const reason = isRateLimited ? 'rate limit' : 'unavailable';
  const isEarly = isRateLimited && known.perMinute !== null && refusals === 1;
  const ownMs = isEarly ? earlyMs : delayAfter(pauses[reason], refusals, random);
  const pauseMs = retryAfterMs ?? (isNewWave ? ownMs : 0);
  const paused = {
    ...known,
    reason,
    said: said.slice(0, saidMax),
    refusals,
    pausedUntil: Math.max(known.pausedUntil, now + pauseMs),
    refusedAt: isNewWave ? now : known.refusedAt,
    refusedBefore: isNewWave ? known.refusedAt : known.refusedBefore,
  } as const;
  return isRateLimited
    ? { ...paused, ...slowed(known, refusal, isNewWave, now), raisedAt: now }
    : paused;
}

/** The rate after a refusal: estimated at the first wave, lower after each further one. */
function slowed(known: Pace, refusal: Refusal, isNewWave: boolean, now: number): Partial<Pace> {
  const { perMinute, refusedAt } = known;
  if (perMinute === null) return estimated({ ...known, observed: {} }, refusal);
  if (!isNewWave) return isEstimated(known) ? estimated(known, refusal) : {};
  const share = now - refusedAt < decrease.soonMs ? decrease.soon : decrease.later;
  return { perMinute: Math.max(perMinuteMin, perMinute * share), observed: {} };
}

/** Whether the rate is still an estimate, of which more refusals and answers teach more. */
export const isEstimated = ({ observed }: Pace) => Object.keys(observed).length > 0;

/** The rate at which the calls of all processes were served, when the first one was refused. */
function estimated(known: Pace, { begunAt, process, served }: EndedCall): Partial<Pace> {
  const countedUntil = isEstimated(known) ? known.countedUntil : begunAt + arrivalMs;
  const own = served.filter((at) => at > countedUntil - countedMs && at <= countedUntil).length;
  const observed = { ...known.observed, [process]: (minuteMs / countedMs) * own };
  const sum = Object.values(observed).reduce((a, b) => a + b, 0);
  return { perMinute: Math.max(estimateMin, sum * estimateShare), observed, countedUntil };
}

/** The pace after an answer to a call; the moments of a limit of `calls` a minute stay. */
export function answered(pace: Pace, { calls }: MinuteLimits, call: EndedCall, now: number): Pace {
  const { begunAt, process } = call;
  const before = current(pace, now);
  // No call of the process was refused when those of others were.
  const isUncounted =
    isEstimated(before) &&
    now - before.countedUntil < knownMs &&
    !Object.hasOwn(before.observed, process);
  const known = isUncounted ? { ...before, ...estimated(before, call) } : before;
  if (begunAt <= known.refusedAt) {
    // Between two waves the provider has served some: the next pause is a short one again.
    const served = known.reason === 'rate limit' && begunAt > known.refusedBefore;
    return served ? { ...known, refusals: Math.min(known.refusals, 1) } : known;
  }
  const { perMinute, raisedAt, nextAt, refusedAt } = known;
  if (perMinute === null) {
    // What has a position behind a pause has none once that is over.
    const shares = known.pausedUntil > now ? [] : known.shares;
    return { ...known, refusals: 0, pausedUntil: 0, nextAt: calls === null ? 0 : nextAt, shares };
  }
  const sinceMs = now - refusedAt;
  const share = rises.find(({ before }) => sinceMs < before * 1_000)?.share ?? 0;
  const seconds = Math.max(0, Math.min(now - raisedAt, risenMaxMs)) / 1_000;
  // A rate that is not used up says nothing about what the provider would take.
  const isUsed = nextAt > now;
  const raised = isUsed ? perMinute * (1 + share * seconds) : perMinute;
  return { ...known, refusals: 0, raisedAt: now, perMinute: raised };
}

/** What a pace is now, without what has passed. */
export function current(pace: Pace, now: number): Pace {
  const limit = now + aheadMaxMs;
  const isAhead = (at: number) => (at > limit ? 0 : at);
  const known = {
    ...pace,
    pausedUntil: isAhead(pace.pausedUntil),
    nextAt: isAhead(pace.nextAt),
    tokensAt: isAhead(pace.tokensAt),
    shares: pace.shares.filter(({ dueAt, lineAt }) => {
      const last = Math.max(dueAt, lineAt);
      return last > now && last <= limit;
    }),
  };
  if (pace.refusedAt > now + refusedAheadMaxMs) return freshPace;
  const isOld = now - pace.refusedAt > forgetAfterMs && now > known.pausedUntil;
  const { nextAt, tokensAt, shares } = known;
  return isOld ? { ...freshPace, nextAt, tokensAt, shares } : known;
}
