/**
 * The sessions that were signed out. This process refuses such a session at once, and every other one within half a
 * second. The record of a session is kept until no cookie of it is valid any more.
 */
import type { Database } from '../../adapters/database/database.ts';
import { deleteAll } from '../../adapters/database/in-batches.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import { deleteExpiredSessions, insertEndedSession, isEndedSession } from './console.store.ts';

/** How long a process relies on what it has read of a session. */
const cacheMs = 500;
const cachedMax = 10_000;
/** Records that one transaction deletes. */
const rowsMax = 1_000;

export class EndedSessions {
  readonly #database: Database;
  readonly #known: ShortCache<boolean>;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#known = new ShortCache(clock, cacheMs, cachedMax);
  }

  /** Ends a session whose cookies have all expired at `expiresAt`; again has no further effect. */
  async add(id: string, expiresAt: number): Promise<void> {
    await this.#database.write((tx) => insertEndedSession(tx, { id, expires_at: expiresAt }));
    this.#known.forget(id);
  }

  async has(id: string): Promise<boolean> {
    const read = () => isEndedSession(this.#database.read, id);
    return this.#known.get(id) ?? (await this.#known.read(id, read));
  }
}

/** Deletes the records of sessions whose cookies have all expired. */
export async function deleteEndedSessions(deps: {
  readonly database: Database;
  readonly clock: Clock;
}): Promise<void> {
  const now = deps.clock.now();
  await deleteAll(deps.database, rowsMax, (tx) => deleteExpiredSessions(tx, now, rowsMax));
}
