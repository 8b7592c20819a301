/**
 * The exact sliding minute (specification: Limits): a hit is allowed if and only if fewer than
 * `limit` hits were allowed in the minute that ends now. Refused hits do not count, so a client
 * that keeps sending is served again on time. The limiter uses monotonic time, so a change of the wall
 * clock has no effect.
 */
import type { Clock } from '../../kernel/clock.ts';

export const windowMs = 60_000;

/** The decision on a hit, in the terms of the X-RateLimit headers. */
export interface RateDecision {
  readonly allowed: boolean;
  readonly limit: number;
  /** Hits left in the window after this one. */
  readonly remaining: number;
  /** Unix second, rounded up, at which the oldest counted hit leaves the window. */
  readonly reset: number;
  /** Whole seconds, at least 1, after which one more hit is allowed. */
  readonly retryAfter: number;
}

export interface RateLimiter {
  /**
   * Counts a hit of `key` if it is allowed. Rejects with `service_unavailable` when it cannot decide; with
   * `isNeeded`, which is called only then, it decides in any case. Several `hits` are allowed together or not at all.
   */
  hit(
    key: string,
    limit: number,
    isNeeded?: boolean | (() => boolean),
    hits?: number,
  ): RateDecision | Promise<RateDecision>;
  /** Uncounts a hit that `hit` has allowed before: the newest of the key. */
  giveBack(key: string): void | Promise<void>;
}

/** The limiter of one process: the times of the allowed hits of each key, in a ring buffer. */
export class MemoryRateLimiter implements RateLimiter {
  readonly #clock: Clock;
  readonly #rings = new Map<string, Ring>();
  #cleanedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#cleanedAt = clock.monotonic();
  }

  hit(key: string, limit: number, _isNeeded?: unknown, hits = 1): RateDecision {
    const now = this.#clock.monotonic();
    this.#clean(now);
    let ring = this.#rings.get(key);
    if (ring === undefined) {
      ring = { times: new Float64Array(16), head: 0, size: 0 };
      this.#rings.set(key, ring);
    }
    forget(ring, now);
    const allowed = ring.size + hits <= limit;
    for (let hit = 0; allowed && hit < hits; hit++) remember(ring, now);
    // When the limit was lowered meanwhile, more than the oldest hit must leave the window.
    // As many must leave as the hits lack; a single one lacks one at most.
    const missing = allowed ? 0 : Math.min(ring.size, ring.size + hits - limit) - 1;
    const untilFree = untilLeaves(ring, Math.max(0, ring.size - limit, missing), now);
    return {
      allowed,
      limit,
      remaining: Math.max(0, limit - ring.size),
      reset: Math.ceil((this.#clock.now() + untilLeaves(ring, 0, now)) / 1000),
      retryAfter: Math.max(1, Math.ceil(untilFree / 1000)),
    };
  }

  giveBack(key: string): void {
    const ring = this.#rings.get(key);
    if (ring !== undefined && ring.size > 0) ring.size--;
  }

  #clean(now: number): void {
    if (now - this.#cleanedAt < windowMs) return;
    this.#cleanedAt = now;
    for (const [key, ring] of this.#rings) {
      forget(ring, now);
      if (ring.size === 0) this.#rings.delete(key);
    }
  }
}

/** Times in order; `head` is the oldest of `size`. Capacities are powers of two. */
interface Ring {
  times: Float64Array;
  head: number;
  size: number;
}

/** Until the `n`-th oldest time leaves the window. */
function untilLeaves({ times, head }: Ring, n: number, now: number): number {
  return (times[(head + n) & (times.length - 1)] as number) + windowMs - now;
}

function forget(ring: Ring, now: number): void {
  const { times } = ring;
  while (ring.size > 0 && (times[ring.head] as number) <= now - windowMs) {
    ring.head = (ring.head + 1) & (times.length - 1);
    ring.size--;
  }
}

function remember(ring: Ring, now: number): void {
  if (ring.size === ring.times.length) {
    const larger = new Float64Array(ring.times.length * 2);
    larger.set(ring.times.subarray(ring.head));
    larger.set(ring.times.subarray(0, ring.head), ring.times.length - ring.head);
    ring.times = larger;
    ring.head = 0;
  }
  ring.times[(ring.head + ring.size) & (ring.times.length - 1)] = now;
  ring.size++;
}
