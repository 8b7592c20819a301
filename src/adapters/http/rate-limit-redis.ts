/**
 * The exact sliding minute over many processes: the times of a key's allowed hits are a sorted set in
 * Redis, by Redis's clock, and one script decides on all hits that arrive together. While Redis is
 * unavailable, requests are refused, because they could not be limited. Requests that record work are
 * limited by each process to its share instead, so that work is accepted while the database is available.
 */
import { PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Redis } from '../redis/redis.ts';
import { type RateDecision, type RateLimiter, windowMs } from './rate-limit.ts';

/** Hits in one call of the script. */
const batchMax = 200;
const prefix = 'rate-limit:';

/**
 * Counts hits of several keys: for each key its limit and the number of its hits, as many of which are allowed as
 * the limit has left. Returns for each key [hits allowed now, hits in the window before, ms until the oldest leaves,
 * ms until one more hit is allowed]; before them Redis's time in milliseconds. Refused hits are not recorded. Times
 * are recorded in microseconds; a counter separates hits at the same time.
 */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window = ${windowMs} * 1000
local present = string.format('%.0f', now)
local past = string.format('%.0f', now - window)
local answer = { string.format('%.0f', now / 1000) }
for i, key in ipairs(KEYS) do
  local limit = tonumber(ARGV[2 * i - 1])
  local requested = tonumber(ARGV[2 * i])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', past)
  local before = redis.call('ZCARD', key)
  local allowed = math.max(0, math.min(requested, limit - before))
  if allowed > 0 then
    local entries = {}
    for hit = 1, allowed do
      table.insert(entries, present)
      table.insert(entries, present .. '-' .. (before + hit) .. '-' .. i)
    end
    redis.call('ZADD', key, unpack(entries))
    redis.call('PEXPIRE', key, ${windowMs})
  end
  local function left(n)
    local entry = redis.call('ZRANGE', key, n, n, 'WITHSCORES')
    return math.ceil((entry[2] + window - now) / 1000)
  end
  table.insert(answer, allowed)
  table.insert(answer, before)
  table.insert(answer, left(0))
  table.insert(answer, allowed == requested and 0 or left(before + allowed - limit))
end
return answer
`;

/**
 * Counts several hits of one key if all of them are allowed. Returns Redis's time in milliseconds, whether they are, the
 * hits in the window before, the ms until the oldest leaves, and those until as many are allowed.
 */
const scriptOfMany = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window = ${windowMs} * 1000
local key = KEYS[1]
local limit = tonumber(ARGV[1])
local hits = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - window))
local before = redis.call('ZCARD', key)
local allowed = before + hits <= limit
if allowed then
  local present = string.format('%.0f', now)
  for from = 1, hits, 1000 do
    local entries = {}
    for hit = from, math.min(hits, from + 999) do
      table.insert(entries, present)
      table.insert(entries, present .. '-' .. (before + hit) .. '-m')
    end
    redis.call('ZADD', key, unpack(entries))
  end
  redis.call('PEXPIRE', key, ${windowMs})
end
local function left(n)
  local entry = redis.call('ZRANGE', key, n, n, 'WITHSCORES')
  if not entry[2] then return ${windowMs} end
  return math.ceil((entry[2] + window - now) / 1000)
end
local leaving = math.max(1, math.min(before, before + hits - limit))
return { string.format('%.0f', now / 1000), allowed and 1 or 0, before, left(0), left(leaving - 1) }
`;

interface Hit {
  readonly key: string;
  readonly limit: number;
  readonly decision: PromiseWithResolvers<RateDecision>;
}

/** Hits of one key under one limit, in the order in which they arrived. */
interface Group {
  readonly key: string;
  readonly limit: number;
  readonly hits: Hit[];
}

export class RedisRateLimiter implements RateLimiter {
  readonly #redis: Redis;
  readonly #local: RateLimiter;
  readonly #processes: () => number;
  readonly #log: Logger;
  /** The hits of this turn of the event loop. */
  #waiting: Hit[] = [];

  /**
   * While Redis is unavailable, `local` limits this process, and `processes` returns the number of
   * processes that share a limit.
   */
  constructor(redis: Redis, local: RateLimiter, processes: () => number, log: Logger) {
    redis.commands.defineCommand('decideHits', { lua: script });
    redis.commands.defineCommand('decideTogether', { lua: scriptOfMany, numberOfKeys: 1 });
    this.#redis = redis;
    this.#local = local;
    this.#processes = processes;
    this.#log = log;
  }

  async hit(
    key: string,
    limit: number,
    isNeeded: boolean | (() => boolean) = false,
    hits = 1,
  ): Promise<RateDecision> {
    try {
      if (this.#redis.isConnected()) {
        return await (hits === 1
          ? this.#hitInRedis(key, limit)
          : decideTogether(this.#redis, key, limit, hits));
      }
    } catch (err) {
      this.#log.debug({ err }, 'Redis did not decide on a hit');
    }
    if (typeof isNeeded === 'function' ? !isNeeded() : !isNeeded) {
      throw new PlatformError(
        'service_unavailable',
        'The store that counts requests cannot be reached right now',
        { retryAfter: 2 },
      );
    }
    const share = Math.max(1, Math.floor(limit / Math.max(1, this.#processes())));
    return { ...(await this.#local.hit(key, share, true, hits)), limit };
  }

  async giveBack(key: string): Promise<void> {
    if (!this.#redis.isConnected()) return this.#local.giveBack(key);
    try {
      await this.#redis.commands.zpopmax(prefix + key);
    } catch (err) {
      this.#log.debug({ err }, 'Redis did not give a hit back');
    }
  }

  #hitInRedis(key: string, limit: number): Promise<RateDecision> {
    const decision = Promise.withResolvers<RateDecision>();
    if (this.#waiting.length === 0) setImmediate(() => this.#decideAll());
    this.#waiting.push({ key, limit, decision });
    return decision.promise;
  }

  #decideAll(): void {
    const hits = this.#waiting;
    this.#waiting = [];
    for (let from = 0; from < hits.length; from += batchMax) {
      void decide(this.#redis, hits.slice(from, from + batchMax));
    }
  }
}

async function decide({ commands }: Redis, hits: readonly Hit[]): Promise<void> {
  const groups = groupsOf(hits);
  const scripted = commands as unknown as Record<
    'decideHits',
    (...args: (string | number)[]) => Promise<(string | number)[]>
  >;
  try {
    const found = await scripted.decideHits(
      groups.length,
      ...groups.map(({ key }) => prefix + key),
      ...groups.flatMap(({ limit, hits }) => [limit, hits.length]),
    );
    const answer = found.map(Number);
    const now = answer[0] as number;
    groups.forEach((group, i) => {
      const [allowed, before, untilLeaves, untilFree] = answer.slice(
        1 + 4 * i,
        5 + 4 * i,
      ) as Counted;
      const reset = Math.ceil((now + untilLeaves) / 1000);
      const retryAfter = Math.max(1, Math.ceil(untilFree / 1000));
      group.hits.forEach(({ limit, decision }, n) => {
        const remaining = Math.max(0, limit - before - Math.min(n + 1, allowed));
        decision.resolve({ allowed: n < allowed, limit, remaining, reset, retryAfter });
      });
    });
  } catch (error) {
    for (const { decision } of hits) decision.reject(error);
  }
}

/** Decides on several hits of one key, which are allowed together or not at all. */
async function decideTogether(
  { commands }: Redis,
  key: string,
  limit: number,
  hits: number,
): Promise<RateDecision> {
  const scripted = commands as unknown as Record<
    'decideTogether',
    (...args: (string | number)[]) => Promise<(string | number)[]>
  >;
  const found = await scripted.decideTogether(prefix + key, limit, hits);
  const [now, isAllowed, before, untilLeaves, untilFree] = found.map(Number) as Together;
  const allowed = isAllowed === 1;
  return {
    allowed,
    limit,
    remaining: Math.max(0, limit - before - (allowed ? hits : 0)),
    reset: Math.ceil((now + untilLeaves) / 1000),
    retryAfter: Math.max(1, Math.ceil(untilFree / 1000)),
  };
}

type Together = [now: number, allowed: number, before: number, untilLeaves: number, free: number];

/** What the script returns for a key. */
type Counted = [allowed: number, before: number, untilLeaves: number, untilFree: number];

/** Those of one client usually arrive together, and a group costs the script as much as a single hit. */
function groupsOf(hits: readonly Hit[]): Group[] {
  const groups = new Map<string, Group>();
  for (const hit of hits) {
    const { key, limit } = hit;
    const name = `${limit} ${key}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { key, limit, hits: [hit] });
    else group.hits.push(hit);
  }
  return [...groups.values()];
}
