/**
 * Constant load as a careful client makes it: so many executions a second over all api processes, each
 * with an Idempotency-Key of its own, asked again with the same key after a 503 and after a connection
 * that failed, at the next process, until it is accepted. What was accepted, and how each request went,
 * is on record here.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

/** Executions under way at a time; beyond, the load has failed rather than grown. */
const underWayMax = 5_000;
/** Before the same is asked again: of a refused connection, and at most of a Retry-After. */
const retryMs = 200;
const retryAfterMaxMs = 1_000;

export interface LoadOptions {
  readonly perSecond: number;
  /** Where requests may be sent at this moment; in turns. */
  urls(): readonly string[];
  /** Plaintext of an API key. */
  readonly key: string;
  /** `category/version/name`. */
  readonly skill: string;
  /** Input of the n-th execution, from 0. */
  input(n: number): unknown;
  /** Further headers of the n-th. */
  headers?(n: number): Record<string, string>;
  /** A client that waits longer for an answer gives up and asks again. */
  readonly requestTimeoutMs?: number;
  /** How long one execution is tried before it counts as refused. */
  readonly giveUpMs?: number;
}

/** How one request went. */
export interface Attempt {
  /** The status of the answer, or why there was none. */
  readonly outcome: number | 'refused' | 'broken' | 'timeout';
  /** Milliseconds until the answer. */
  readonly ms: number;
  /** When it was sent, on the monotonic clock of this process. */
  readonly at: number;
}

export interface Load {
  /** Job ids of everything that was accepted, each with the number of its execution. */
  readonly accepted: ReadonlyMap<string, number>;
  /** Every request so far. */
  readonly attempts: readonly Attempt[];
  /** Answers that no careful client would ask again after, such as a 400 or a 500. */
  readonly unexpected: readonly string[];
  /** Begins no more; resolves when each has been accepted, or it has given up. */
  stop(): Promise<void>;
  /** Begins no more, and asks for nothing again. */
  abandon(): void;
}

/** Begins at once; ends with `stop`. */
export function startLoad(options: LoadOptions): Load {
  const { perSecond, urls, key, skill, input, headers = () => ({}) } = options;
  const { requestTimeoutMs = 10_000, giveUpMs = 120_000 } = options;
  const accepted = new Map<string, number>();
  const attempts: Attempt[] = [];
  const unexpected: string[] = [];
  const underWay = new Set<Promise<void>>();
  const began = performance.now();
  let begun = 0;
  let isAbandoned = false;
  let turn = 0;

  async function execute(n: number): Promise<void> {
    const idempotencyKey = `load-${n}-${randomUUID()}`;
    const giveUpAt = performance.now() + giveUpMs;
    const body = JSON.stringify(input(n));
    while (performance.now() < giveUpAt && !isAbandoned) {
      const targets = urls();
      const target = targets[turn++ % targets.length];
      // No process listens, as behind a load balancer without a backend.
      const { attempt, text, retryAfterMs } =
        target === undefined
          ? { attempt: lost('refused', performance.now()), text: '', retryAfterMs: retryMs }
          : await ask(`${target}/api/${skill}`, body, requestTimeoutMs, {
              'x-api-key': key,
              'idempotency-key': idempotencyKey,
              ...headers(n),
            });
      attempts.push(attempt);
      // A 200 is the job that has ended, for who wanted to wait.
      if (attempt.outcome === 202 || attempt.outcome === 200) {
        accepted.set(JSON.parse(text).job_id, n);
        return;
      }
      if (typeof attempt.outcome === 'number' && attempt.outcome !== 503) {
        unexpected.push(`${attempt.outcome} ${text}`);
        return;
      }
      await pause(Math.min(retryAfterMs, retryAfterMaxMs));
    }
    unexpected.push(`execution ${n} was not accepted in ${giveUpMs} ms`);
  }

  // By the clock, not by the interval: a timer that was late is made up for.
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
    for (; begun < due; begun++) {
      if (underWay.size >= underWayMax) {
        unexpected.push(`${underWayMax} executions are under way`);
        clearInterval(timer);
        return;
      }
      const execution = execute(begun).finally(() => underWay.delete(execution));
      underWay.add(execution);
    }
  }, 10);

  return {
    accepted,
    attempts,
    unexpected,
    async stop() {
      clearInterval(timer);
      await Promise.all(underWay);
    },
    abandon() {
      isAbandoned = true;
      clearInterval(timer);
    },
  };
}

async function ask(
  url: string,
  body: string,
  timeoutMs: number,
  headers: Record<string, string>,
): Promise<{ attempt: Attempt; text: string; retryAfterMs: number }> {
  const at = performance.now();
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await response.text();
    const retryAfter = Number(response.headers.get('retry-after') ?? 0) * 1000;
    return {
      attempt: { outcome: response.status, ms: performance.now() - at, at },
      text,
      retryAfterMs: retryAfter || retryMs,
    };
  } catch (error) {
    return { attempt: lost(whyLost(error as Error), at), text: '', retryAfterMs: retryMs };
  }
}

function lost(outcome: 'refused' | 'broken' | 'timeout', at: number): Attempt {
  return { outcome, ms: performance.now() - at, at };
}

function whyLost({ name, cause }: Error): 'refused' | 'broken' | 'timeout' {
  if (name === 'TimeoutError') return 'timeout';
  return (cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED'
    ? 'refused'
    : 'broken';
}

/** How many requests had each outcome, as text: `202: 1200, 503: 14, refused: 3`. */
export function outcomesOf(attempts: readonly Attempt[]): string {
  const counts = new Map<string, number>();
  for (const { outcome } of attempts) {
    counts.set(String(outcome), (counts.get(String(outcome)) ?? 0) + 1);
  }
  return [...counts]
    .toSorted()
    .map(([outcome, n]) => `${outcome}: ${n}`)
    .join(', ');
}

/** The longest time in which nothing was accepted, in milliseconds. */
export function longestPauseMs(attempts: readonly Attempt[]): number {
  const moments = attempts
    .filter(({ outcome }) => outcome === 202 || outcome === 200)
    .map(({ at, ms }) => at + ms)
    .toSorted((a, b) => a - b);
  return Math.max(0, ...moments.slice(1).map((moment, i) => moment - (moments[i] as number)));
}
