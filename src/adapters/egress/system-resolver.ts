/**
 * The system's resolver, shared by all callers. A lookup holds one of Node's few threads until it is
 * answered. When the name servers are silent, that takes longer than any caller waits, and a lookup cannot
 * be cancelled. So each name holds at most one thread, and all slow names together hold one, because they
 * are looked up one after the other.
 */
import { lookup } from 'node:dns/promises';

/** Resolves a name to all its addresses. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** A name is slow when its lookup takes longer. */
const slowAfterMs = 5_000;
/** The longest that a lookup waits for its turn; no caller waits longer for an answer. */
const queuedMaxMs = 10_000;
/** Slow names remembered. */
const slowNamesMax = 10_000;

/** Shares the lookups of `ask` between callers. */
export function sharedResolver(ask: Resolve): Resolve {
  const underWay = new Map<string, Promise<readonly string[]>>();
  const slowNames = new Set<string>();
  /** Resolves when the last queued lookup of a slow name has ended. */
  let lastSlow: Promise<unknown> = Promise.resolve();

  function markSlow(name: string): void {
    slowNames.add(name);
    const [oldest] = slowNames;
    if (slowNames.size > slowNamesMax && oldest !== undefined) slowNames.delete(oldest);
  }

  async function timed(name: string): Promise<readonly string[]> {
    let isInTime = true;
    const timer = setTimeout(() => {
      isInTime = false;
      markSlow(name);
    }, slowAfterMs);
    try {
      return await ask(name);
    } finally {
      clearTimeout(timer);
      // An error, for example for an unknown name, is an answer as well.
      if (isInTime) slowNames.delete(name);
    }
  }

  function inTurn(name: string): Promise<readonly string[]> {
    const givenUpAt = performance.now() + queuedMaxMs;
    const answer = lastSlow.then(() => {
      if (performance.now() < givenUpAt) return timed(name);
      throw new Error(`${name} was not looked up: other names took too long`);
    });
    lastSlow = answer.catch(() => {});
    return answer;
  }

  return (name) => {
    const before = underWay.get(name);
    if (before !== undefined) return before;
    const answer = (slowNames.has(name) ? inTurn(name) : timed(name)).finally(() =>
      underWay.delete(name),
    );
    underWay.set(name, answer);
    return answer;
  };
}

/** The resolver of this process; there is only one, because the threads belong to the process. */
export const systemResolve: Resolve = sharedResolver(async (hostname) => {
  const answers = await lookup(hostname, { all: true, order: 'verbatim' });
  return answers.map((answer) => answer.address);
});
