/**
 * The system's resolver, shared. A lookup holds one of the few threads that Node has for them until it
 * is answered, which for a name whose servers are silent takes longer than any caller waits; and a
 * thread cannot be taken back. So no name holds more than one thread, and names that have been slow
 * are looked up one after the other, so that however many there are, they hold one together.
 */
import { lookup } from 'node:dns/promises';

/** Answers a name with all its addresses. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** A lookup that takes longer makes its name a slow one. */
const slowAfterMs = 5_000;
/** The longest that a lookup waits for its turn; no caller waits longer for an answer. */
const queuedMaxMs = 10_000;
/** Slow names remembered. */
const slowNamesMax = 10_000;

/** Shares lookups by `ask`. */
export function sharedResolver(ask: Resolve): Resolve {
  const underWay = new Map<string, Promise<readonly string[]>>();
  const slowNames = new Set<string>();
  /** Resolves when the slow name whose turn it is has been answered. */
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
      // That there is no such name is an answer too.
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

/** Asks the system; one for the whole process, as its threads are. */
export const systemResolve: Resolve = sharedResolver(async (hostname) => {
  const answers = await lookup(hostname, { all: true, order: 'verbatim' });
  return answers.map((answer) => answer.address);
});
