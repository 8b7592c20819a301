/**
 * The pace of calls of one provider, or of one of its models, with one credential. A refusal begins a pause, and where the
 * provider limits a rate it teaches how many calls the provider takes; from then on each call gets a moment of its own. The
 * learned rate rises slowly while no call is refused, so it follows the provider. Pure: time and chance are arguments.
 */
import type { MinuteLimits } from '../../../adapters/models/providers.ts';
import { delayAfter } from '../../../kernel/backoff.ts';

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
};

/** A refused call. */
export interface Refusal {
  readonly begunAt: number;
  readonly isRateLimited: boolean;
  /** What the provider asks for. */
  readonly retryAfterMs: number | null;
  readonly said: string;
  /** Calls a minute of this process that were not refused. */
  readonly observed: number;
  readonly process: string;
}

const minuteMs = 60_000;
/** Bounds of a learned rate: of the first estimate, and of what further refusals make of it. */
const estimateMin = 60;
const perMinuteMin = 6;
/** Of an estimate, so that calls that come a little early are not refused. */
const estimateShare = 0.96;
const decrease = { soonMs: 10_000, soon: 0.85, later: 0.93 };
/** The rise of the rate a second, by the seconds since the last refusal. */
const rises = [
  { before: 20, share: 0.001 },
  { before: 60, share: 0.02 },
  { before: Number.POSITIVE_INFINITY, share: 0.1 },
];
/** Characters that are kept of what a provider said. */
const saidMax = 500;
/** The longest time for which one answer raises the rate. */
const risenMaxMs = 5_000;
/** A rate at which nothing was refused for so long is forgotten. */
const forgetAfterMs = 600_000;
/** Pauses where the provider names none. */
const pauses = {
  'rate limit': { baseMs: 500, maxMs: 60_000 },
  unavailable: { baseMs: 2_000, maxMs: 60_000 },
};
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

/**
 * The moment of a call, and the pace after it. A call whose moment is after `until` gets none: then the pace stays.
 */
export function takeMoment(
  pace: Pace,
  limits: MinuteLimits,
  { tokens, until }: { readonly tokens: number; readonly until: number },
  now: number,
): { readonly at: number; readonly pace: Pace } {
  const known = current(pace, now);
  const rate = Math.min(known.perMinute ?? Infinity, limits.calls ?? Infinity);
  const isLimited = Number.isFinite(rate) || known.refusals > 0 || known.pausedUntil > now;
  const ofCalls = isLimited ? known.nextAt : 0;
  const ofTokens = limits.tokens === null ? 0 : known.tokensAt;
  const at = Math.max(now, known.pausedUntil, ofCalls, ofTokens);
  if (at > until) return { at, pace: known };
  const everyMs = Number.isFinite(rate) ? minuteMs / rate : probeEveryMs(known, at);
  const tokensAt = limits.tokens === null ? 0 : at + (tokens * minuteMs) / limits.tokens;
  return { at, pace: { ...known, nextAt: isLimited ? at + everyMs : 0, tokensAt } };
}

/** The pace after a call that took so many tokens more, or fewer, than its moment was reserved for. */
export function spent(pace: Pace, { tokens: perMinute }: MinuteLimits, more: number): Pace {
  if (perMinute === null) return pace;
  return { ...pace, tokensAt: pace.tokensAt + (more * minuteMs) / perMinute };
}

/** After an outage a few calls find out whether it is over, and many follow. */
function probeEveryMs({ pausedUntil }: Pace, at: number): number {
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
  const pauseMs = retryAfterMs ?? (isNewWave ? delayAfter(pauses[reason], refusals, random) : 0);
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
function slowed(
  { perMinute, refusedAt, observed }: Pace,
  { process, observed: own }: Refusal,
  isNewWave: boolean,
  now: number,
): Pick<Pace, 'perMinute' | 'observed'> {
  const isEstimate = perMinute === null || (!isNewWave && Object.keys(observed).length > 0);
  if (isEstimate) {
    const all = { ...observed, [process]: Math.min(own, observed[process] ?? own) };
    const sum = Object.values(all).reduce((a, b) => a + b, 0);
    return { perMinute: Math.max(estimateMin, sum * estimateShare), observed: all };
  }
  if (!isNewWave) return { perMinute, observed };
  const share = now - refusedAt < decrease.soonMs ? decrease.soon : decrease.later;
  return {
    perMinute: Math.max(perMinuteMin, perMinute * share),
    observed: {},
  };
}

/** The pace after an answer to a call that began then; the moments of a limit of `calls` a minute stay. */
export function answered(pace: Pace, { calls }: MinuteLimits, begunAt: number, now: number): Pace {
  const known = current(pace, now);
  if (begunAt <= known.refusedAt) {
    // Between two waves the provider has served some: the next pause is a short one again.
    const served = known.reason === 'rate limit' && begunAt > known.refusedBefore;
    return served ? { ...known, refusals: Math.min(known.refusals, 1) } : known;
  }
  const { perMinute, raisedAt, nextAt, refusedAt } = known;
  if (perMinute === null)
    return { ...known, refusals: 0, pausedUntil: 0, nextAt: calls === null ? 0 : nextAt };
  const sinceMs = now - refusedAt;
  const share = rises.find(({ before }) => sinceMs < before * 1_000)?.share ?? 0;
  const seconds = Math.max(0, Math.min(now - raisedAt, risenMaxMs)) / 1_000;
  // A rate that is not used up says nothing about what the provider would take.
  const isUsed = nextAt > now;
  const raised = isUsed ? perMinute * (1 + share * seconds) : perMinute;
  return { ...known, refusals: 0, raisedAt: now, perMinute: raised };
}

function current(pace: Pace, now: number): Pace {
  const limit = now + aheadMaxMs;
  const isAhead = (at: number) => (at > limit ? 0 : at);
  const known = {
    ...pace,
    pausedUntil: isAhead(pace.pausedUntil),
    nextAt: isAhead(pace.nextAt),
    tokensAt: isAhead(pace.tokensAt),
  };
  if (pace.refusedAt > now + refusedAheadMaxMs) return freshPace;
  const isOld = now - pace.refusedAt > forgetAfterMs && now > known.pausedUntil;
  return isOld ? { ...freshPace, nextAt: known.nextAt, tokensAt: known.tokensAt } : known;
}
