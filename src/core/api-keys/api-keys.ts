/**
 * API keys: issued once, stored as a hash, verified from a cache, revoked for good. This process refuses
 * a revoked key at once, and every other one within a second.
 */
import { hash, randomBytes } from 'node:crypto';
import { type Cap, requireRoom } from '../../adapters/database/caps.ts';
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import { isOrganization } from '../../adapters/database/organizations.ts';
import { bind } from '../../kernel/bind.ts';
import type { Caller } from '../../kernel/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId, newId } from '../../kernel/ids.ts';
import { createShortCache, type ShortCache } from '../../kernel/short-cache.ts';
import { isSame } from '../../kernel/timing-safe.ts';
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

/** A key as it is cached; its caller is null once it is revoked. */
interface CachedKey {
  readonly caller: Caller | null;
  readonly expiresAt: number | null;
}

/** `now` lies at or after the end of the key. */
const hasExpired = (expiresAt: number | null, now: number) =>
  expiresAt !== null && expiresAt <= now;

interface ApiKeyState {
  readonly database: Database;
  readonly clock: Clock;
  /** Runs in the transaction that creates an organization. */
  readonly onOrganization: (tx: Transaction, organizationId: string, now: number) => Promise<void>;
  readonly cap: Cap;
  readonly keysByHash: ShortCache<CachedKey>;
  readonly keysById: ShortCache<CachedKey>;
  /** By organization. */
  readonly consoleKeys: ShortCache<ApiKeyRow | undefined>;
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

/** `max` bounds the API keys of an organization that are not revoked. */
export function createApiKeys(
  database: Database,
  clock: Clock,
  onOrganization: ApiKeyState['onOrganization'],
  max = Number.POSITIVE_INFINITY,
) {
  const state: ApiKeyState = {
    database,
    clock,
    onOrganization,
    cap: {
      table: 'api_keys',
      where: { enabled: 1 },
      things: 'API keys that are not revoked',
      remedy: 'revoke one first',
      max,
    },
    keysByHash: createShortCache(clock, cacheMs, cachedMax),
    keysById: createShortCache(clock, cacheMs, cachedMax),
    consoleKeys: createShortCache(clock, cacheMs, cachedMax),
  };
  return bind(state, {
    verify,
    callerById,
    cachedCaller,
    organizationOf,
    issue,
    consoleCaller,
    organizations,
    list,
    revoke,
  });
}

/** The caller of a plaintext key, or `401`. A promise only when the cache has none. */
function verify(state: ApiKeyState, key: string): Caller | Promise<Caller> {
  const { keysByHash, clock } = state;
  const keyHash = hash('sha256', key);
  const known = keysByHash.get(keyHash);
  if (known !== undefined && known.caller !== null && !hasExpired(known.expiresAt, clock.now())) {
    return known.caller;
  }
  // Only valid keys are cached: the read throws for any other.
  const read = keysByHash.read(keyHash, () => readValid(state, keyHash));
  return read.then(({ caller }) => caller as Caller);
}

async function readValid({ database, clock }: ApiKeyState, keyHash: string): Promise<CachedKey> {
  const row = await findApiKeyByHash(database.read, { key_hash: keyHash });
  if (row === undefined || row.enabled === 0 || !isSame(row.key_hash, keyHash)) {
    throw new PlatformError('invalid_api_key', 'The API key is invalid or revoked');
  }
  if (hasExpired(row.expires_at, clock.now())) {
    throw new PlatformError('api_key_expired', 'The API key has expired');
  }
  return { caller: callerOf(row), expiresAt: row.expires_at };
}

async function readById(db: Handle, id: string): Promise<CachedKey> {
  const row = await findApiKeyById(db, { id });
  const caller = row === undefined || row.enabled === 0 ? null : callerOf(row);
  return { caller, expiresAt: row?.expires_at ?? null };
}

/** The caller of a key by its id, for deferred work; undefined when it is revoked or has expired. */
async function callerById(
  state: ApiKeyState,
  id: string,
  db: Handle = state.database.read,
): Promise<Caller | undefined> {
  return currentCaller(state, await readById(db, id));
}

/**
 * Like `callerById`, cached for a second: a key that this process revokes is refused at once, one that
 * another process revokes within a second.
 */
async function cachedCaller(state: ApiKeyState, id: string): Promise<Caller | undefined> {
  const { keysById } = state;
  const known =
    keysById.get(id) ?? (await keysById.read(id, () => readById(state.database.read, id)));
  return currentCaller(state, known);
}

function currentCaller({ clock }: ApiKeyState, { caller, expiresAt }: CachedKey) {
  return hasExpired(expiresAt, clock.now()) ? undefined : (caller ?? undefined);
}

/** The organization of a key, revoked or not; `404` for an unknown key. */
async function organizationOf({ database }: ApiKeyState, id: string): Promise<string> {
  const row = isId(id) ? await findApiKeyById(database.read, { id }) : undefined;
  if (row === undefined) throw notFound('API key');
  return row.organization_id;
}

/** Every organization, oldest first; on a new platform the default one, which does not exist yet. */
async function organizations({ database }: ApiKeyState): Promise<string[]> {
  const known = await listOrganizations(database.read);
  return known.length > 0 ? known : [defaultOrganizationId];
}

async function list({ database }: ApiKeyState) {
  return (await listApiKeys(database.read)).map(apiKeyBody);
}

/** Issues a key. Only the result has its plaintext. */
async function issue(state: ApiKeyState, request: NewApiKey) {
  const { row, plaintext } = newKey(request, state.clock.now());
  await store(state, row, insertApiKey, [state.cap]);
  const { created_at, expires_at, ...key } = apiKeyBody(row);
  return { ...key, plaintext_key: plaintext, created_at };
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

/** Stores a key by `insert`, and creates its organization with its first key; `409` beyond `caps`. */
function store(
  { database, onOrganization }: ApiKeyState,
  row: ApiKeyRow,
  insert: typeof insertApiKey,
  caps: readonly Cap[],
): Promise<void> {
  return database.write(async (tx) => {
    const { organization_id, created_at } = row;
    const isNew = await insertOrganization(tx, organization_id, created_at);
    if (isNew) await onOrganization(tx, organization_id, created_at);
    else await requireRoom(tx, organization_id, caps);
    await insert(tx, row);
  });
}

/**
 * The caller as which the administrator acts in an organization: its console key, created on first use,
 * whose plaintext is discarded. Records name the key, and it can be revoked like any other. Undefined for
 * an unknown organization.
 */
async function consoleCaller(state: ApiKeyState, organizationId: string) {
  const { consoleKeys } = state;
  const read = () => consoleKey(state, organizationId);
  const row =
    consoleKeys.get(organizationId) ??
    (await consoleKeys.read(organizationId, read, (found) => found !== undefined));
  return row && callerOf(row);
}

async function consoleKey(state: ApiKeyState, organizationId: string) {
  const { read } = state.database;
  const known = await findConsoleKey(read, organizationId);
  if (known !== undefined) return known;
  const exists =
    organizationId === defaultOrganizationId || (await isOrganization(read, organizationId));
  if (!exists) return undefined;
  const request = { ...consoleKeyFields, organization_id: organizationId };
  const { row } = newKey(request, state.clock.now(), true);
  // No caps: without this key the administrator could not revoke other keys in the console.
  await store(state, row, insertConsoleKey, []);
  // A concurrent request or another process may have inserted one first.
  return (await findConsoleKey(read, organizationId)) ?? row;
}

/** Revokes a key for good; `404` for an unknown key. Revoking twice has no further effect. */
async function revoke(
  { database, keysByHash, keysById, consoleKeys }: ApiKeyState,
  id: string,
): Promise<{ message: string; id: string }> {
  const row = isId(id) ? await database.write((tx) => disableApiKey(tx, id)) : undefined;
  if (row === undefined) throw notFound('API key');
  keysByHash.forget(row.key_hash);
  keysById.forget(id);
  consoleKeys.forget(row.organization_id);
  return { message: 'The API key is revoked', id };
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
