/**
 * API keys: issued once, stored as a hash, verified from memory, revoked for good. A revoked key is
 * refused at once by this process and within a second by every other one.
 */
import { createHash, hash, randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../database/caps.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { Caller } from '../kernel/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../kernel/clock.ts';
import { notFound, PlatformError } from '../kernel/errors.ts';
import { isId, newId } from '../kernel/ids.ts';
import { isSame } from '../kernel/same.ts';
import { createShortCache } from '../kernel/short-cache.ts';
import {
  type ApiKeyRow,
  disableApiKey,
  findApiKeyByHash,
  findApiKeyById,
  findConsoleKey,
  insertApiKey,
  insertConsoleKey,
  insertOrganization,
  isOrganization,
  listApiKeys,
  listOrganizations,
} from './api-keys.store.ts';

/** How long a verified key is believed without asking the database again. */
const believedMs = 1_000;
/** Keys kept in memory; the oldest goes first. */
const rememberedMax = 10_000;

/** The organization of keys that name none. It exists from its first key on, like every other. */
const defaultOrganizationId = 'default';

/** What the administrator does in the console is done with a key like this one. */
const ofConsole = { client_name: 'console', scopes: ['*'], rate_limit: 6_000 };

export interface NewApiKey {
  client_name: string;
  scopes: readonly string[];
  rate_limit?: number;
  /** Milliseconds since the epoch; already known to lie ahead. */
  expires_at?: number;
  organization_id?: string;
}

interface Remembered {
  readonly caller: Caller;
  readonly expiresAt: number | null;
}

/** A key by its id; no caller once it is revoked. */
interface RememberedById {
  readonly caller: Caller | null;
  readonly expiresAt: number | null;
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

/**
 * `onOrganization` runs in the transaction that brings a new organization into being. `max` is how many
 * API keys an organization may have that are not revoked.
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
  const remembered = createShortCache<Remembered>(clock, believedMs, rememberedMax);
  const rememberedById = createShortCache<RememberedById>(clock, believedMs, rememberedMax);
  const consoleKeys = createShortCache<ApiKeyRow | undefined>(clock, believedMs, rememberedMax);

  /** The caller behind a key, from memory; undefined when the database has to be asked. */
  function recall(keyHash: string): Caller | undefined {
    const known = remembered.get(keyHash);
    if (known === undefined) return undefined;
    return known.expiresAt !== null && known.expiresAt <= clock.now() ? undefined : known.caller;
  }

  async function verifyStored(keyHash: string): Promise<Remembered> {
    const row = await findApiKeyByHash(database.read, keyHash);
    if (row === undefined || row.enabled === 0 || !isSame(row.key_hash, keyHash)) {
      throw new PlatformError('invalid_api_key', 'The API key is invalid or revoked');
    }
    if (row.expires_at !== null && row.expires_at <= clock.now()) {
      throw new PlatformError('api_key_expired', 'The API key has expired');
    }
    return { caller: callerOf(row), expiresAt: row.expires_at };
  }

  async function storedById(id: string): Promise<RememberedById> {
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

  /** Stores a key by `insert`, and its organization with its first key; `409` beyond `caps`. */
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
    const { row } = newKey({ ...ofConsole, organization_id: organizationId }, true);
    // Without it the administrator could not even revoke a key in the console.
    await store(row, insertConsoleKey, []);
    // Another request, or process, may have been first.
    return (await findConsoleKey(database.read, organizationId)) ?? row;
  }

  return {
    /** The caller behind a key as it was sent, or `401`. A promise only when the database is asked. */
    verify(key: string): Caller | Promise<Caller> {
      const keyHash = hash('sha256', key);
      const known = recall(keyHash);
      if (known !== undefined) return known;
      return remembered.read(keyHash, () => verifyStored(keyHash)).then(({ caller }) => caller);
    },

    /** The caller behind a key's id, for work done later in its name; undefined when it may no more. */
    async callerById(id: string): Promise<Caller | undefined> {
      const row = await findApiKeyById(database.read, id);
      if (row === undefined || row.enabled === 0) return undefined;
      if (row.expires_at !== null && row.expires_at <= clock.now()) return undefined;
      return callerOf(row);
    },

    /**
     * As `callerById`, from memory for a second: a key that is revoked here counts as that at once, one
     * that is revoked in another process a second later.
     */
    async believedCaller(id: string): Promise<Caller | undefined> {
      const known = rememberedById.get(id) ?? (await rememberedById.read(id, () => storedById(id)));
      const { caller, expiresAt } = known;
      return expiresAt !== null && expiresAt <= clock.now() ? undefined : (caller ?? undefined);
    },

    /** The organization of a key, revoked or not; `404` when there is none. */
    async organizationOf(id: string): Promise<string> {
      const row = isId(id) ? await findApiKeyById(database.read, id) : undefined;
      if (row === undefined) throw notFound('API key');
      return row.organization_id;
    },

    /** Issues a key. The answer alone holds its plaintext. */
    async issue(request: NewApiKey) {
      const { row, plaintext } = newKey(request);
      await store(row, insertApiKey, [cap]);
      const { created_at, expires_at, ...key } = shown(row);
      return { ...key, plaintext_key: plaintext, created_at };
    },

    /**
     * Whom the administrator acts as in an organization: a key of its own, which is made when it is
     * first needed and whose plaintext nobody ever had. What is done with it is found under its name,
     * and it is revoked like any other. Undefined for an organization that does not exist.
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

    /** Every organization, oldest first; on a new platform the one that its first key will be of. */
    async organizations(): Promise<string[]> {
      const known = await listOrganizations(database.read);
      return known.length > 0 ? known : [defaultOrganizationId];
    },

    async list() {
      return (await listApiKeys(database.read)).map(shown);
    },

    /** Revokes a key for good; `404` when there is none, nothing new when it is revoked already. */
    async revoke(id: string) {
      const row = isId(id) ? await database.write((tx) => disableApiKey(tx, id)) : undefined;
      if (row === undefined) throw notFound('API key');
      remembered.forget(row.key_hash);
      rememberedById.forget(id);
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

function shown(row: Omit<ApiKeyRow, 'key_hash' | 'console'>) {
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
