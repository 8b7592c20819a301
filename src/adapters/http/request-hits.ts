/** The hits of a request that stands for several: of a batch each item counts, of a retry of many each run. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PlatformError } from '../../kernel/errors.ts';
import { limitOf } from './authenticate.ts';
import type { RateDecision, RateLimiter } from './rate-limit.ts';

/** Counts them against the limit of the caller. The admission of the request has counted the first. */
export class RequestHits {
  readonly #limiter: RateLimiter;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  #isFirst = true;

  constructor(limiter: RateLimiter, request: FastifyRequest, reply: FastifyReply) {
    this.#limiter = limiter;
    this.#request = request;
    this.#reply = reply;
  }

  /** Hits that the limit allows in a minute. */
  get perMinute(): number {
    return limitOf(this.#request).perMinute;
  }

  /** Counts so many hits in all, or throws `429` and counts none, not even the first. */
  async countTogether(hits: number): Promise<void> {
    if (hits <= 1) return;
    const { limitedAs, perMinute } = limitOf(this.#request);
    const decision = await this.#limiter.hit(limitedAs, perMinute, true, hits - 1);
    if (decision.allowed) {
      this.#report(decision, decision.remaining);
      return;
    }
    await this.#limiter.giveBack(limitedAs);
    this.#report(decision, decision.remaining + 1);
    const message = `${perMinute} requests per minute are allowed, and each item counts as one`;
    const { retryAfter } = decision;
    throw new PlatformError('rate_limit_exceeded', message, { retryAfter });
  }

  /** Counts one more hit; whether it is allowed. */
  async countNext(): Promise<boolean> {
    if (this.#isFirst) {
      this.#isFirst = false;
      return true;
    }
    const { limitedAs, perMinute } = limitOf(this.#request);
    const decision = await this.#limiter.hit(limitedAs, perMinute, true);
    this.#report(decision, decision.remaining);
    return decision.allowed;
  }

  #report({ reset }: RateDecision, remaining: number): void {
    this.#reply.header('x-ratelimit-remaining', remaining).header('x-ratelimit-reset', reset);
  }
}
