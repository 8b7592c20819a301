/**
 * When the next call begins at a provider that has a pace. The organizations that share a credential go round, by their
 * weights, as in the turns of jobs. A call whose turn is near gets a moment of its own. Another one gets a position in the line of
 * its organization, and asks again shortly before that is due. So however many calls of one organization wait, a call of
 * another one begins within seconds; what is cancelled leaves no moment unused for long; and no process knows more than the
 * others. Pure: time is an argument.
 */
import type { MinuteLimits } from '../../adapters/models/providers.ts';
import {
  current,
  isEstimated,
  minuteMs,
  type Pace,
  probeEveryMs,
  type Share,
} from './pace-rule.ts';

/** A call has its turn so long before it begins, and longer where it comes back from its position, which is an estimate. */
const nearMs = 3_000;
const backMs = 4_500;
/** It comes back so long before its position: to load a run takes a while. */
const leadMs = 1_500;
/** Moments further ahead are kept for no call: runs that are cancelled would leave them unused. */
const momentMaxMs = 10_000;
/** Positions further ahead, or after the end of a pause: the organizations that go round are others by then. */
const positionMaxMs = 30_000;
/** So long the calls that were refused together teach how many were not; until then no call gets a moment. */
const learningMs = 300;
/** Organizations that one pace tells apart; further ones share a turn. */
const sharesMax = 1_000;
const others = '';

/** A call that is to begin. */
export interface WaitingCall {
  /** Tokens that it takes most likely. */
  readonly tokens: number;
  /** It begins, or asks again, until then at the latest. */
  readonly until: number;
  /** Whether it has waited: it is then before those of its organization that have not. */
  readonly hasWaited: boolean;
  /** A moment that is further ahead would be lost: it does not wait so long, but asks again then. */
  readonly aheadMs?: number;
}

export interface Asking extends WaitingCall {
  readonly organization: string;
  /** Of the organization. */
  readonly weight: number;
}

export interface LimitedPace {
  readonly pace: Pace;
  readonly limits: MinuteLimits;
}

export interface TakenMoment {
  /**
   * A moment, in which the call begins; a position, at which it asks again; or late: it gets neither, as it cannot begin before
   * that.
   */
  readonly kind: 'moment' | 'position' | 'late';
  readonly at: number;
}

export interface Taken extends TakenMoment {
  /** The pace that holds it up for longest. */
  readonly slowest: Pace;
  /** What is known then. */
  readonly paces: readonly Pace[];
}

/** The moment of a call that keeps to several paces, such as that of its model and that of its provider. */
export function takeMoment(limited: readonly LimitedPace[], asking: Asking, now: number): Taken {
  const all = limited.map((one) => standingOf(one, asking, now));
  const { hasWaited, until, aheadMs = momentMaxMs } = asking;
  const at = Math.max(...all.map((one) => one.at));
  const slowest = all.reduce((a, b) => (b.at > a.at ? b : a)).known;
  const isNear = at <= Math.min(until, now + Math.min(aheadMs, momentMaxMs));
  if (isNear && all.some(({ known }) => isEstimated(known) && now < known.refusedAt + learningMs)) {
    return {
      kind: 'position',
      at: now + learningMs,
      slowest,
      paces: all.map(({ known }) => known),
    };
  }
  const base = Math.max(...all.map((one) => one.base));
  // Where no call has a moment, those whose turn it would be are gone.
  const isTurn =
    at === base || all.every((one) => one.turnAt - one.base <= (hasWaited ? backMs : nearMs));
  if (isTurn && isNear) {
    const paces = all.map((one) => withMoment(one, asking, at));
    return { kind: 'moment', at, slowest, paces };
  }
  const position = Math.max(at, ...all.map(({ positionAt }) => positionAt));
  const backAt = Math.max(base, position - leadMs);
  if (at > until || backAt > Math.min(until, base + positionMaxMs)) {
    return {
      kind: 'late',
      // Others may be gone long before its turn.
      at: Math.max(at, Math.min(backAt, base + positionMaxMs)),
      slowest,
      paces: all.map(({ known }) => known),
    };
  }
  const paces = all.map((one) => withPosition(one, asking, position));
  return { kind: 'position', at: backAt, slowest, paces };
}

/** How a call stands with one pace. */
interface Standing {
  readonly known: Pace;
  readonly limits: MinuteLimits;
  /** Calls a minute; null where none is limited, and infinite where it is not known how many. */
  readonly rate: number | null;
  readonly share: Share;
  /** No call begins before. */
  readonly base: number;
  /** When it may begin after the calls that have a moment. */
  readonly at: number;
  /** When it is its turn, and when if it stands behind those of its organization that have a position. */
  readonly turnAt: number;
  readonly positionAt: number;
}

function standingOf({ pace, limits }: LimitedPace, asking: Asking, now: number): Standing {
  const known = current(pace, now);
  const least = Math.min(known.perMinute ?? Infinity, limits.calls ?? Infinity);
  const isLimited = least < Infinity || known.refusals > 0 || known.pausedUntil > now;
  const base = Math.max(now, known.pausedUntil);
  const ofTokens = limits.tokens === null ? 0 : known.tokensAt;
  const share = shareOf(known, asking);
  const dueAt = Math.max(base, share.dueAt);
  const positionAt = Math.max(dueAt, share.lineAt);
  return {
    known,
    limits,
    rate: isLimited ? least : null,
    share,
    base,
    at: Math.max(base, isLimited ? known.nextAt : 0, ofTokens),
    // Where no call of its organization has a moment, those with a position have not come back.
    turnAt: asking.hasWaited || dueAt === base ? dueAt : positionAt,
    positionAt,
  };
}

function shareOf({ shares }: Pace, { organization, weight }: Asking): Share {
  const find = (name: string) => shares.find((one) => one.organization === name);
  const own = find(organization);
  const name = own === undefined && shares.length >= sharesMax ? others : organization;
  const { dueAt, lineAt } = own ?? find(name) ?? { dueAt: 0, lineAt: 0 };
  return { organization: name, weight, dueAt, lineAt };
}

/** Until the next call after one at that moment, by the rate of calls and by that of tokens. */
function gapsOf({ known, limits, rate }: Standing, tokens: number, at: number) {
  const callMs = rate === Infinity ? probeEveryMs(known, at) : minuteMs / (rate ?? Infinity);
  const tokensMs = limits.tokens === null ? 0 : (tokens * minuteMs) / limits.tokens;
  return { callMs, tokensMs, ofShareMs: Math.max(callMs, tokensMs) };
}

function withMoment(one: Standing, { tokens }: Asking, at: number): Pace {
  const { known, limits, rate, share, base } = one;
  const { callMs, tokensMs, ofShareMs } = gapsOf(one, tokens, at);
  const dueAt = Math.max(base, share.dueAt) + ofShareMs * partsOf(known, share);
  return {
    ...known,
    nextAt: rate === null ? 0 : at + callMs,
    tokensAt: limits.tokens === null ? 0 : at + tokensMs,
    shares: ofShareMs === 0 ? known.shares : withShare(known, { ...share, dueAt }),
  };
}

function withPosition(one: Standing, { tokens }: Asking, position: number): Pace {
  const { known, share } = one;
  const { ofShareMs } = gapsOf(one, tokens, position);
  if (ofShareMs === 0) return known;
  const lineAt = position + ofShareMs * partsOf(known, share);
  return { ...known, shares: withShare(known, { ...share, lineAt }) };
}

/** The pace after a call of an organization that took so many tokens more, or fewer, than its moment was reserved for. */
export function spent(
  pace: Pace,
  { tokens: perMinute }: MinuteLimits,
  organization: string,
  more: number,
): Pace {
  if (perMinute === null) return pace;
  const ms = (more * minuteMs) / perMinute;
  const shares = pace.shares.map((share) =>
    share.organization === organization
      ? { ...share, dueAt: share.dueAt + ms * partsOf(pace, share) }
      : share,
  );
  return { ...pace, tokensAt: pace.tokensAt + ms, shares };
}

/** Into how many parts a pace is divided, of which one is the organization's. */
function partsOf({ shares }: Pace, { organization, weight }: Share): number {
  const besides = shares.filter((one) => one.organization !== organization);
  return besides.reduce((sum, one) => sum + one.weight, weight) / weight;
}

const withShare = ({ shares }: Pace, share: Share): readonly Share[] => [
  ...shares.filter(({ organization }) => organization !== share.organization),
  share,
];
