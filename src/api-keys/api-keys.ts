/**
 * API keys: issued once, stored as a hash, verified from a cache, revoked for good. This process refuses
 * a revoked key at once, and every other one within a second.
 */
import { createHash, hash, randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../database/caps.ts';
import type { Database, Transaction } from '../database/database.ts';
import { isOrganization } from '../database/organizations.ts';
import type { Caller } from '../kernel/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../kernel/clock.ts';
import { notFound, PlatformError } from '../kernel/errors.ts';
import { isId, newId } from '../kernel/ids.ts';
import { createShortCache } from '../kernel/short-cache.ts';
import { isSame } from '../kernel/timing-safe.ts';
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

/** The key with which the administrator acts in the console. */
const consoleKeyFields = { client_name: 'console', scopes: ['*'], rate_limit: 6_000 };

export interface NewApiKey {
  client_name: string;
  scopes: readonly string[];
  rate_limit?: number;
  /** Milliseconds since the epoch; the caller has checked that it lies in the future. */
  expires_at?: number;
  organization_id?: string;
}

interface CachedKey {
  readonly caller: Caller;
  readonly expiresAt: number | null;
}

/** A key by its id; its caller is null once it is revoked. */
interface CachedKeyById {
  readonly caller: Caller | null;
  readonly expiresAt: number | null;
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

/**
 * `onOrganization` runs in the transaction that creates an organization. `max` bounds the API keys of an
 * organization that are not revoked.
 */
export function createApiKeys(
  database: Database,
  clock: Clock,
  onOrganization: (tx: Transaction, organizationId: string, now: number) => Promise<void>,
  max = Number.POSITIVE_INFINITY,
) {
  const cap: Cap = {
    table: 'api_keys',
    where: { enabled: 1 },
    owner: 'The organization',
    things: 'API keys that are not revoked',
    remedy: 'revoke one first',
    max,
  };
  const keysByHash = createShortCache<CachedKey>(clock, cacheMs, cachedMax);
  const keysById = createShortCache<CachedKeyById>(clock, cacheMs, cachedMax);
  const consoleKeys = createShortCache<ApiKeyRow | undefined>(clock, cacheMs, cachedMax);

  /** The caller of a key from the cache; undefined when it is not cached. */
  function cachedByHash(keyHash: string): Caller | undefined {
    const known = keysByHash.get(keyHash);
    if (known === undefined) return undefined;
    return known.expiresAt !== null && known.expiresAt <= clock.now() ? undefined : known.caller;
  }

  async function verifyStored(keyHash: string): Promise<CachedKey> {
    const row = await findApiKeyByHash(database.read, keyHash);
    if (row === undefined || row.enabled === 0 || !isSame(row.key_hash, keyHash)) {
      throw new PlatformError('invalid_api_key', 'The API key is invalid or revoked');
    }
    if (row.expires_at !== null && row.expires_at <= clock.now()) {
      throw new PlatformError('api_key_expired', 'The API key has expired');
    }
    return { caller: callerOf(row), expiresAt: row.expires_at };
  }

  async function storedById(id: string): Promise<CachedKeyById> {
    const row = await findApiKeyById(database.read, id);
    const caller = row === undefined || row.enabled === 0 ? null : callerOf(row);
    return { caller, expiresAt: row?.expires_at ?? null };
  }

  /** A new key, not yet stored, and its plaintext, which is never stored. */
  function newKey(request: NewApiKey, isConsole = false): { row: ApiKeyRow; plaintext: string } {
    const plaintext = `sk_${randomBytes(32).toString('base64url')}`;
    const row = {
      id: newId(),
      organization_id: request.organization_id ?? defaultOrganizationId,
      client_name: request.client_name,
      key_hash: createHash('sha256').update(plaintext).digest('hex'),
      scopes: JSON.stringify(request.scopes),
      rate_limit: request.rate_limit ?? 100,
      enabled: 1,
      created_at: clock.now(),
      expires_at: request.expires_at ?? null,
      console: Number(isConsole),
    };
    return { row, plaintext };
  }

  /** Stores a key by `insert`, and creates its organization with its first key; `409` beyond `caps`. */
  const store = (row: ApiKeyRow, insert: typeof insertApiKey, caps: readonly Cap[]) =>
    database.write(async (tx) => {
      const { organization_id, created_at } = row;
      const isNew = await insertOrganization(tx, organization_id, created_at);
      if (isNew) await onOrganization(tx, organization_id, created_at);
      else await requireRoom(tx, organization_id, caps);
      await insert(tx, row);
    });

  async function consoleKey(organizationId: string): Promise<ApiKeyRow | undefined> {
    const known = await findConsoleKey(database.read, organizationId);
    if (known !== undefined) return known;
    const exists =
      organizationId === defaultOrganizationId ||
      (await isOrganization(database.read, organizationId));
    if (!exists) return undefined;
    const { row } = newKey({ ...consoleKeyFields, organization_id: organizationId }, true);
    // No caps: without this key the administrator could not revoke other keys in the console.
    await store(row, insertConsoleKey, []);
    // A concurrent request or another process may have inserted one first.
    return (await findConsoleKey(database.read, organizationId)) ?? row;
  }

  return {
    /** The caller of a plaintext key, or `401`. A promise only when the cache has none. */
    verify(key: string): Caller | Promise<Caller> {
      const keyHash = hash('sha256', key);
      const known = cachedByHash(keyHash);
      if (known !== undefined) return known;
      return keysByHash.read(keyHash, () => verifyStored(keyHash)).then(({ caller }) => caller);
    },

    /** The caller of a key by its id, for deferred work; undefined when it is revoked or has expired. */
    async callerById(id: string): Promise<Caller | undefined> {
      const row = await findApiKeyById(database.read, id);
      if (row === undefined || row.enabled === 0) return undefined;
      if (row.expires_at !== null && row.expires_at <= clock.now()) return undefined;
      return callerOf(row);
    },

    /**
     * Like `callerById`, cached for a second: a key that this process revokes is refused at once, one
     * that another process revokes within a second.
     */
    async cachedCaller(id: string): Promise<Caller | undefined> {
      const known = keysById.get(id) ?? (await keysById.read(id, () => storedById(id)));
      const { caller, expiresAt } = known;
      return expiresAt !== null && expiresAt <= clock.now() ? undefined : (caller ?? undefined);
    },

    /** The organization of a key, revoked or not; `404` for an unknown key. */
    async organizationOf(id: string): Promise<string> {
      const row = isId(id) ? await findApiKeyById(database.read, id) : undefined;
      if (row === undefined) throw notFound('API key');
      return row.organization_id;
    },

    /** Issues a key. Only the result has its plaintext. */
    async issue(request: NewApiKey) {
      const { row, plaintext } = newKey(request);
      await store(row, insertApiKey, [cap]);
      const { created_at, expires_at, ...key } = apiKeyBody(row);
      return { ...key, plaintext_key: plaintext, created_at };
    },

    /**
     * The caller as which the administrator acts in an organization: its console key, created on first
     * use, whose plaintext is discarded. Records name the key, and it can be revoked like any other.
     * Undefined for an unknown organization.
     */
    async consoleCaller(organizationId: string): Promise<Caller | undefined> {
      const row =
        consoleKeys.get(organizationId) ??
        (await consoleKeys.read(
          organizationId,
          () => consoleKey(organizationId),
          (found) => found !== undefined,
        ));
      return row === undefined ? undefined : callerOf(row);
    },

    /** Every organization, oldest first; on a new platform the default one, which does not exist yet. */
    async organizations(): Promise<string[]> {
      const known = await listOrganizations(database.read);
      return known.length > 0 ? known : [defaultOrganizationId];
    },

    async list() {
      return (await listApiKeys(database.read)).map(apiKeyBody);
    },

    /** Revokes a key for good; `404` for an unknown key. Revoking twice has no further effect. */
    async revoke(id: string) {
      const row = isId(id) ? await database.write((tx) => disableApiKey(tx, id)) : undefined;
      if (row === undefined) throw notFound('API key');
      keysByHash.forget(row.key_hash);
      keysById.forget(id);
      consoleKeys.forget(row.organization_id);
      return { message: 'The API key is revoked', id };
    },
  };
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

function apiKeyBody(row: Omit<ApiKeyRow, 'key_hash' | 'console'>) {
  return {
    id: row.id,
    organization_id: row.organization_id,
    client_name: row.client_name,
    scopes: JSON.parse(row.scopes) as string[],
    rate_limit: row.rate_limit,
    enabled: row.enabled === 1,
    created_at: timestamp(row.created_at),
    expires_at: timestampOrNull(row.expires_at),
  };
}
