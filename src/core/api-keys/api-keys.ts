/**
 * API keys: issued once, stored as a hash, verified from a cache, revoked for good. This process refuses
 * a revoked key at once, and every other one within a second.
 */
import { hash, randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../../adapters/database/caps.ts';
import type { Database, Handle } from '../../adapters/database/database.ts';
import { isOrganization } from '../../adapters/database/organizations.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId, newId } from '../../kernel/ids.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import { isSame } from '../../kernel/timing-safe.ts';
import type { Agents } from '../agents/agents.ts';
import type { Context } from '../context/context.ts';
import { limitOfKey } from '../limits/limit-names.ts';
import {
  type ApiKeyRow,
  disableApiKey,
  findApiKeyByHash,
  findApiKeyById,
  findConsoleKey,
  insertApiKey,
  insertConsoleKey,
  insertOrganization,
  listApiKeys,
  listOrganizations,
} from './api-keys.store.ts';

/** How long a verified key is cached. */
const cacheMs = 1_000;
/** Keys in the cache; the oldest is evicted first. */
const cachedMax = 10_000;

/** The organization of keys that name none. Like every other, it is created with its first key. */
const defaultOrganizationId = 'default';

/** Before the id of a key: the name of its limit. */
const limits = limitOfKey('');

/** The key with which the administrator acts in the console. */
const consoleKeyFields = { client_name: 'console', scopes: ['*'], rate_limit: 6_000 };

export interface NewApiKey {
  client_name: string;
  scopes: readonly string[];
  rate_limit?: number;
  /** Milliseconds since the epoch; the caller has checked that it lies in the future. */
  expires_at?: number;
  organization_id?: string;
  /** Its runs that go on at a time; null for any number. */
  max_concurrency?: number | null;
}

/** A key as it is cached; its caller is null once it is revoked. */
interface CachedKey {
  readonly caller: Caller | null;
  readonly expiresAt: number | null;
}

/** `now` lies at or after the end of the key. */
const hasExpired = (expiresAt: number | null, now: number) =>
  expiresAt !== null && expiresAt <= now;

/** The API keys of all organizations, as this process knows them. */
export class ApiKeys {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #agents: Agents;
  readonly #cap: Cap;
  readonly #keysByHash: ShortCache<CachedKey>;
  readonly #keysById: ShortCache<CachedKey>;
  /** By organization. */
  readonly #consoleKeys: ShortCache<ApiKeyRow | undefined>;

  constructor({ config, database, clock }: Context, agents: Agents) {
    this.#database = database;
    this.#clock = clock;
    this.#agents = agents;
    this.#cap = {
      table: 'api_keys',
      where: { enabled: 1 },
      things: 'API keys that are not revoked',
      remedy: 'revoke one first',
      max: config.apiKeysMax,
    };
    this.#keysByHash = new ShortCache(clock, cacheMs, cachedMax);
    this.#keysById = new ShortCache(clock, cacheMs, cachedMax);
    this.#consoleKeys = new ShortCache(clock, cacheMs, cachedMax);
  }

  /** The caller of a plaintext key, or `401`. A promise only when the cache has none. */
  verify(key: string): Caller | Promise<Caller> {
    const keyHash = hash('sha256', key);
    const known = this.#keysByHash.get(keyHash);
    if (
      known !== undefined &&
      known.caller !== null &&
      !hasExpired(known.expiresAt, this.#clock.now())
    ) {
      return known.caller;
    }
    // Only valid keys are cached: the read throws for any other.
    const read = this.#keysByHash.read(keyHash, () => this.#readValid(keyHash));
    return read.then(({ caller }) => caller as Caller);
  }

  async #readValid(keyHash: string): Promise<CachedKey> {
    const row = await findApiKeyByHash(this.#database.read, { key_hash: keyHash, limits });
    if (row === undefined || row.enabled === 0 || !isSame(row.key_hash, keyHash)) {
      throw new PlatformError('invalid_api_key', 'The API key is invalid or revoked');
    }
    if (hasExpired(row.expires_at, this.#clock.now())) {
      throw new PlatformError('api_key_expired', 'The API key has expired');
    }
    // Another process may have created it with a limit just now.
    const { max_concurrency: max } = row;
    if (max !== null) await this.#agents.limits.follow(limitOfKey(row.id), max);
    return { caller: callerOf(row), expiresAt: row.expires_at };
  }

  /** The caller of a key by its id, for deferred work; undefined when it is revoked or has expired. */
  async callerById(id: string, db: Handle = this.#database.read): Promise<Caller | undefined> {
    return this.#currentCaller(await readById(db, id));
  }

  /**
   * Like `callerById`, cached for a second: a key that this process revokes is refused at once, one that
   * another process revokes within a second.
   */
  async cachedCaller(id: string): Promise<Caller | undefined> {
    const known =
      this.#keysById.get(id) ??
      (await this.#keysById.read(id, () => readById(this.#database.read, id)));
    return this.#currentCaller(known);
  }

  #currentCaller({ caller, expiresAt }: CachedKey) {
    return hasExpired(expiresAt, this.#clock.now()) ? undefined : (caller ?? undefined);
  }

  /** The organization of a key, revoked or not; `404` for an unknown key. */
  async organizationOf(id: string): Promise<string> {
    const row = isId(id) ? await findApiKeyById(this.#database.read, { id }) : undefined;
    if (row === undefined) throw notFound('API key');
    return row.organization_id;
  }

  /** Every organization, oldest first; on a new platform the default one, which does not exist yet. */
  async organizations(): Promise<string[]> {
    const known = await listOrganizations(this.#database.read);
    return known.length > 0 ? known : [defaultOrganizationId];
  }

  async list() {
    return (await listApiKeys(this.#database.read, limits)).map(apiKeyBody);
  }

  /** Issues a key. Only the result has its plaintext. */
  async issue(request: NewApiKey) {
    const { row, plaintext } = newKey(request, this.#clock.now());
    const { max_concurrency = null } = request;
    await this.#store(row, insertApiKey, [this.#cap], max_concurrency);
    const { created_at, expires_at, ...key } = apiKeyBody({ ...row, max_concurrency });
    return { ...key, plaintext_key: plaintext, created_at };
  }

  /** Stores a key by `insert` with its limit, and creates its organization with its first key; `409` beyond `caps`. */
  #store(
    row: ApiKeyRow,
    insert: typeof insertApiKey,
    caps: readonly Cap[],
    max: number | null = null,
  ): Promise<void> {
    return this.#database.write(async (tx) => {
      const { organization_id, created_at } = row;
      const isNew = await insertOrganization(tx, organization_id, created_at);
      if (isNew) await this.#agents.createDefault(tx, organization_id, created_at);
      else await requireRoom(tx, organization_id, caps);
      await insert(tx, row);
      if (max !== null) await this.#agents.limits.setWithin(tx, limitOfKey(row.id), max);
    });
  }

  /**
   * The caller as which the administrator acts in an organization: its console key, created on first use,
   * whose plaintext is discarded. Records name the key, and it can be revoked like any other. Undefined for
   * an unknown organization.
   */
  async consoleCaller(organizationId: string) {
    const read = () => this.#consoleKey(organizationId);
    const row =
      this.#consoleKeys.get(organizationId) ??
      (await this.#consoleKeys.read(organizationId, read, (found) => found !== undefined));
    return row && callerOf(row);
  }

  async #consoleKey(organizationId: string) {
    const { read } = this.#database;
    const known = await findConsoleKey(read, organizationId);
    if (known !== undefined) return known;
    const exists =
      organizationId === defaultOrganizationId || (await isOrganization(read, organizationId));
    if (!exists) return undefined;
    const request = { ...consoleKeyFields, organization_id: organizationId };
    const { row } = newKey(request, this.#clock.now(), true);
    // No caps: without this key the administrator could not revoke other keys in the console.
    await this.#store(row, insertConsoleKey, []);
    // A concurrent request or another process may have inserted one first.
    return (await findConsoleKey(read, organizationId)) ?? row;
  }

  /** Revokes a key for good; `404` for an unknown key. Revoking twice has no further effect. */
  async revoke(id: string): Promise<{ message: string; id: string }> {
    const row = isId(id) ? await this.#database.write((tx) => disableApiKey(tx, id)) : undefined;
    if (row === undefined) throw notFound('API key');
    this.#keysByHash.forget(row.key_hash);
    this.#keysById.forget(id);
    this.#consoleKeys.forget(row.organization_id);
    return { message: 'The API key is revoked', id };
  }
}

async function readById(db: Handle, id: string): Promise<CachedKey> {
  const row = await findApiKeyById(db, { id });
  const caller = row === undefined || row.enabled === 0 ? null : callerOf(row);
  return { caller, expiresAt: row?.expires_at ?? null };
}

/** A new key, not yet stored, and its plaintext, which is never stored. */
function newKey(request: NewApiKey, now: number, isConsole = false) {
  const plaintext = `sk_${randomBytes(32).toString('base64url')}`;
  const row = {
    id: newId(),
    organization_id: request.organization_id ?? defaultOrganizationId,
    client_name: request.client_name,
    key_hash: hash('sha256', plaintext),
    scopes: JSON.stringify(request.scopes),
    rate_limit: request.rate_limit ?? 100,
    enabled: 1,
    created_at: now,
    expires_at: request.expires_at ?? null,
    console: Number(isConsole),
  };
  return { row, plaintext };
}

function callerOf(row: ApiKeyRow): Caller {
  return {
    keyId: row.id,
    organizationId: row.organization_id,
    clientName: row.client_name,
    scopes: JSON.parse(row.scopes) as string[],
    rateLimit: row.rate_limit,
  };
}

function apiKeyBody(
  row: Omit<ApiKeyRow, 'key_hash' | 'console'> & { readonly max_concurrency: number | null },
) {
  return {
    id: row.id,
    organization_id: row.organization_id,
    client_name: row.client_name,
    scopes: JSON.parse(row.scopes) as string[],
    rate_limit: row.rate_limit,
    ...(row.max_concurrency !== null && { max_concurrency: row.max_concurrency }),
    enabled: row.enabled === 1,
    created_at: timestamp(row.created_at),
    expires_at: timestampOrNull(row.expires_at),
  };
}
