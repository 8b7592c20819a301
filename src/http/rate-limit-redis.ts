/**
 * The exact sliding minute over many processes: the times of a key's allowed hits are a sorted set in
 * Redis, by Redis's clock, and one script decides on all hits that arrive together. While Redis is
 * unavailable, requests are refused, because they could not be limited. Requests that record work are
 * limited by each process to its share instead, so that work is accepted while the database is available.
 */
import { PlatformError } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import type { Redis } from '../redis/redis.ts';
import { type RateDecision, type RateLimiter, windowMs } from './rate-limit.ts';

/** Hits in one call of the script. */
const batchMax = 200;
const prefix = 'rate-limit:';

/**
 * For each key and limit: [allowed, hits in the window, ms until the oldest leaves, ms until one more
 * hit is allowed]; before them Redis's time in milliseconds. Refused hits are not recorded. Times
 * are recorded in microseconds; a counter separates two hits at the same time.
 */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window = ${windowMs} * 1000
local present = string.format('%.0f', now)
local past = string.format('%.0f', now - window)
local answer = { string.format('%.0f', now / 1000) }
for i, key in ipairs(KEYS) do
  local limit = tonumber(ARGV[i])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', past)
  local hits = redis.call('ZCARD', key)
  local allowed = hits < limit and 1 or 0
  if allowed == 1 then
    redis.call('ZADD', key, present, present .. '-' .. hits .. '-' .. i)
    redis.call('PEXPIRE', key, ${windowMs})
    hits = hits + 1
  end
  local function left(n)
    local entry = redis.call('ZRANGE', key, n, n, 'WITHSCORES')
    return math.ceil((entry[2] + window - now) / 1000)
  end
  table.insert(answer, allowed)
  table.insert(answer, hits)
  table.insert(answer, left(0))
  table.insert(answer, allowed == 1 and 0 or left(hits - limit))
end
return answer
`;

interface Hit {
  readonly key: string;
  readonly limit: number;
  resolve(decision: RateDecision): void;
  reject(error: unknown): void;
}

interface Batching {
  readonly decideHits: (keys: string[], limits: number[]) => Promise<(string | number)[]>;
  /** The hits of this turn of the event loop. */
  waiting: Hit[];
}

/**
 * While Redis is unavailable, `local` limits this process, and `processes` returns the number of
 * processes that share a limit.
 */
export function createRedisRateLimiter(
  redis: Redis,
  local: RateLimiter,
  processes: () => number,
  log: Logger,
): RateLimiter {
  const { commands } = redis;
  commands.defineCommand('decideHits', { lua: script });
  const defined = commands as unknown as {
    decideHits(...args: (string | number)[]): Promise<(string | number)[]>;
  };
  const batching: Batching = {
    decideHits: (keys, limits) => defined.decideHits(keys.length, ...keys, ...limits),
    waiting: [],
  };
  return {
    async hit(key, limit, isNeeded = false) {
      try {
        if (redis.isConnected()) return await hitInRedis(batching, key, limit);
      } catch (err) {
        log.debug({ err }, 'Redis judged no hit');
      }
      if (typeof isNeeded === 'function' ? !isNeeded() : !isNeeded) {
        throw new PlatformError(
          'service_unavailable',
          'The store that counts requests cannot be reached right now',
          { retryAfter: 2 },
        );
      }
      const share = Math.max(1, Math.floor(limit / Math.max(1, processes())));
      return { ...(await local.hit(key, share)), limit };
    },
  };
}

function hitInRedis(batching: Batching, key: string, limit: number): Promise<RateDecision> {
  return new Promise((resolve, reject) => {
    if (batching.waiting.length === 0) setImmediate(decideAll, batching);
    batching.waiting.push({ key, limit, resolve, reject });
  });
}

function decideAll(batching: Batching): void {
  const hits = batching.waiting;
  batching.waiting = [];
  for (let from = 0; from < hits.length; from += batchMax) {
    void decide(batching, hits.slice(from, from + batchMax));
  }
}

async function decide({ decideHits }: Batching, hits: readonly Hit[]): Promise<void> {
  try {
    const answer = await decideHits(
      hits.map(({ key }) => prefix + key),
      hits.map(({ limit }) => limit),
    );
    const now = Number(answer[0]);
    hits.forEach((hit, i) => {
      hit.resolve(decisionOf(hit.limit, now, answer.slice(1 + 4 * i, 5 + 4 * i).map(Number)));
    });
  } catch (error) {
    for (const { reject } of hits) reject(error);
  }
}

function decisionOf(limit: number, now: number, answer: readonly number[]): RateDecision {
  const [allowed, count, untilLeaves, untilFree] = answer as [number, number, number, number];
  return {
    allowed: allowed === 1,
    limit,
    remaining: Math.max(0, limit - count),
    reset: Math.ceil((now + untilLeaves) / 1000),
    retryAfter: Math.max(1, Math.ceil(untilFree / 1000)),
  };
}
