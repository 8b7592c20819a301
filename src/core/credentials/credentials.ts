/**
 * Credentials: an organization's own API keys and base urls for providers of models. API keys are stored
 * encrypted, decrypted only for use, and never returned. A change takes effect at once in this process,
 * and within a second in every other one.
 */

import type { Database } from '../../adapters/database/database.ts';
import { isOrganization } from '../../adapters/database/organizations.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import {
  credentialContext,
  decryptValue,
  encryptValue,
} from '../../adapters/database/sealed-values.ts';
import { ModelError } from '../../adapters/models/model.ts';
import {
  type ProtocolName,
  type ProviderSettings,
  partsOfModel,
  protocolNames,
  providerPattern,
} from '../../adapters/models/providers.ts';
import { baseUrlFault } from '../../kernel/base-url.ts';
import { type Clock, timestamp } from '../../kernel/clock.ts';
import type { Cipher } from '../../kernel/encryption.ts';
import { invalid, notFound } from '../../kernel/errors.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import type { Config } from '../config/config.ts';
import type { Context } from '../context/context.ts';
import {
  type CredentialRow,
  deleteCredential,
  findCredential,
  listCredentials,
  listKeys,
  replaceCredential,
} from './credentials.store.ts';

/** API keys that are checked when the platform starts. */
const checkedMax = 1_000;
/** How long credentials are cached. */
const cacheMs = 1_000;
/** Rows in the cache, encrypted as they are stored; the oldest is evicted first. */
const cachedMax = 1_000;

/** The fields that an administrator sets for a provider. */
export interface CredentialFields {
  api_key?: string | null;
  base_url?: string | null;
  protocol?: ProtocolName | null;
}

/** What a provider may speak. */
export const credentialProtocols: readonly ProtocolName[] = protocolNames;

/** Stored credentials that cannot be used; the fault is a sentence for the operator, without secrets. */
export interface UnusableCredentials {
  readonly fault: string;
}

const keyOf = (organizationId: string, provider: string) => `${organizationId}/${provider}`;

/** The credentials of all organizations. */
export class Credentials {
  readonly #database: Database;
  readonly #clock: Clock;
  /** Those of the platform, by name. */
  readonly #providers: Config['providers'];
  readonly #cipher: Cipher | null;
  /** By `keyOf`; null for a provider without credentials of the organization. */
  readonly #cache: ShortCache<CredentialRow | null>;

  /** `cipher` is null without an encryption key: API keys can be neither stored nor used then. */
  constructor({ database, clock, config }: Context, cipher: Cipher | null) {
    this.#database = database;
    this.#clock = clock;
    this.#providers = config.providers;
    this.#cipher = cipher;
    this.#cache = new ShortCache(clock, cacheMs, cachedMax);
  }

  /** Throws `404` for an unknown organization. Organizations are never deleted. */
  async requireOrganization(organizationId: string): Promise<void> {
    if (!(await isOrganization(this.#database.read, organizationId)))
      throw notFound('Organization');
  }

  /** Counts the stored API keys, of the first 1,000, that cannot be decrypted. */
  async countUnusable(): Promise<number> {
    const rows = await listKeys(this.#database.read, checkedMax);
    return rows.filter((row) => 'fault' in settingsIn(this.#cipher, row)).length;
  }

  /** Throws `404` when the organization has no credentials for the provider. */
  async find(organizationId: string, provider: string): Promise<CredentialRow> {
    const row = await findCredential(this.#database.read, organizationId, provider);
    if (row === undefined) throw credentialsNotFound();
    return row;
  }

  async list(organizationId: string, page: PageAsked) {
    const { credentials, total } = await listCredentials(this.#database.read, organizationId, page);
    return { credentials: credentials.map(credentialBody), total };
  }

  /**
   * Stores the credentials of an existing organization for a provider, in place of earlier ones: a field that
   * is left out is removed. Throws `400` for an invalid provider name and when both fields are missing, `409`
   * for an API key without a cipher.
   */
  async replace(organizationId: string, provider: string, fields: CredentialFields) {
    refuseMalformed(provider, fields);
    const now = this.#clock.now();
    const { api_key = null, base_url = null, protocol = null } = fields;
    const named = { organization_id: organizationId, provider, base_url };
    const row = {
      ...named,
      api_key:
        api_key === null
          ? null
          : encryptValue(this.#cipher, api_key, credentialContext(named), 'API keys'),
      protocol,
      created_at: now,
      updated_at: now,
    };
    const replaced = await this.#database.write((tx) => replaceCredential(tx, row));
    this.#cache.forget(keyOf(organizationId, provider));
    return credentialBody(replaced);
  }

  /** Throws `404` when there are none. */
  async remove(organizationId: string, provider: string): Promise<void> {
    const wasThere = await this.#database.write((tx) =>
      deleteCredential(tx, organizationId, provider),
    );
    if (!wasThere) throw credentialsNotFound();
    this.#cache.forget(keyOf(organizationId, provider));
  }

  /**
   * How an organization reaches the provider of a model, `provider/model`: with its own credentials, or with those of the
   * platform; undefined where neither are known. Throws only ModelErrors.
   */
  async settingsForModel(
    organizationId: string,
    model: string,
  ): Promise<ProviderSettings | undefined> {
    const { provider } = partsOfModel(model);
    const own = await this.settingsOf(organizationId, provider).catch((cause: unknown) => {
      const message = `The credentials for ${provider} cannot be read`;
      throw new ModelError('unavailable', message, { cause });
    });
    const platform = this.#providers.get(provider);
    if (own === undefined) return platform;
    if ('fault' in own) throw new ModelError('credentials', own.fault);
    // The platform's address serves an organization's key; its key serves no other address.
    const baseUrl = own.baseUrl ?? platform?.baseUrl ?? null;
    // So does its protocol.
    const protocol = own.protocol ?? (own.baseUrl === null ? platform?.protocol : null);
    // A credential with an address and no key belongs to a provider that requires none.
    return { ...own, baseUrl, protocol, isOpen: own.apiKey === null };
  }

  /**
   * An organization's settings for a provider, decrypted. Undefined when there are none, so that the
   * platform's own settings apply.
   */
  async settingsOf(
    organizationId: string,
    provider: string,
  ): Promise<ProviderSettings | UnusableCredentials | undefined> {
    const key = keyOf(organizationId, provider);
    const stored = async () =>
      (await findCredential(this.#database.read, organizationId, provider)) ?? null;
    const known = this.#cache.get(key);
    const row = known === undefined ? await this.#cache.read(key, stored) : known;
    return row === null ? undefined : settingsIn(this.#cipher, row);
  }
}

function settingsIn(
  cipher: Cipher | null,
  row: CredentialRow,
): ProviderSettings | UnusableCredentials {
  const { base_url: baseUrl, protocol } = row;
  const own = { baseUrl, protocol, source: 'organization' } as const;
  if (row.api_key === null) return { ...own, apiKey: null };
  const sealed = { text: row.api_key, context: credentialContext(row) };
  const opened = decryptValue(cipher, sealed, `API key for ${row.provider}`);
  return 'fault' in opened ? opened : { ...own, apiKey: opened.value };
}

const wellFormedProvider = new RegExp(`^${providerPattern}$`);

/** The checks that a JSON Schema cannot express. */
function refuseMalformed(provider: string, { api_key, base_url }: CredentialFields): void {
  if (!wellFormedProvider.test(provider)) {
    throw invalid(
      'provider',
      'must be a lower-case name of letters, digits and hyphens that begins with a letter',
    );
  }
  if (api_key == null && base_url == null) {
    throw invalid('api_key', 'is required where there is no base_url');
  }
  const fault = base_url == null ? null : baseUrlFault(base_url);
  if (fault !== null) throw invalid('base_url', fault);
}

const credentialsNotFound = () => notFound('Credentials');

/** Credentials in responses: without the key. */
function credentialBody(row: CredentialRow) {
  return {
    organization_id: row.organization_id,
    provider: row.provider,
    base_url: row.base_url,
    protocol: row.protocol as ProtocolName | null,
    has_api_key: row.api_key !== null,
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}
