/**
 * What is stored encrypted, and what each value is bound to: one that was copied to another row cannot be
 * decrypted there. The slices encrypt and decrypt; `skillwright doctor` tries whether a key opens what is stored.
 */
import { type Cipher, DecryptionError } from '../../kernel/encryption.ts';
import { PlatformError } from '../../kernel/errors.ts';

interface Row {
  readonly id: string;
  readonly organization_id: string;
}

interface CredentialRow extends Pick<Row, 'organization_id'> {
  readonly provider: string;
  readonly base_url: string | null;
}

interface SettingRow extends Pick<Row, 'organization_id'> {
  readonly category: string;
  readonly skill_name: string;
  readonly name: string;
  readonly secret: number;
}

interface AccountRow extends Pick<Row, 'organization_id'> {
  readonly source_id: string;
  readonly issuer: string;
  readonly url: string;
}

interface AuthorizationRow extends Pick<Row, 'organization_id'> {
  readonly state_hash: string;
  readonly session_id: string;
}

interface OauthClientRow {
  readonly source_id: string;
  readonly issuer: string;
  readonly redirect_uri: string;
}

/** The contexts of encrypted values, by table. */
export const sealedContexts = {
  webhooks: (row: Row) => signingContext('webhooks', row),
  agent_triggers: (row: Row) => signingContext('agent_triggers', row),
  /** Bound to the base url too: an attacker who changes it in the database does not get the key sent there. */
  credentials: ({ organization_id, provider, base_url }: CredentialRow) =>
    JSON.stringify(['credentials', organization_id, provider, base_url]),
  skill_settings: ({ organization_id, category, skill_name, name, secret }: SettingRow) =>
    JSON.stringify(['skill_settings', organization_id, category, skill_name, name, secret]),
  remote_sources: ({ id }: Pick<Row, 'id'>) => JSON.stringify(['remote_sources', id]),
  remote_accounts: ({ source_id, organization_id, issuer, url }: AccountRow) =>
    JSON.stringify(['remote_accounts', source_id, organization_id, issuer, url]),
  remote_authorizations: ({ state_hash, organization_id, session_id }: AuthorizationRow) =>
    JSON.stringify(['remote_authorizations', state_hash, organization_id, session_id]),
  remote_oauth_clients: ({ source_id, issuer, redirect_uri }: OauthClientRow) =>
    JSON.stringify(['remote_oauth_clients', source_id, issuer, redirect_uri]),
};

function signingContext(table: string, { id, organization_id }: Row): string {
  return JSON.stringify([table, organization_id, id]);
}

/** Values of each table that are looked at. */
const lookedAtMax = 200;

/** For each table a query of some encrypted values, as `sealed`, with what they are bound to. */
export const sealedValues = Object.entries({
  webhooks: ['id, organization_id', 'secret', 'secret_sealed = 1'],
  agent_triggers: ['id, organization_id', 'signing_secret', 'secret_sealed = 1'],
  credentials: ['organization_id, provider, base_url', 'api_key', 'api_key is not null'],
  skill_settings: ['organization_id, category, skill_name, name, secret', 'value', '1 = 1'],
  remote_sources: ['id', 'secrets', 'secrets is not null'],
  remote_accounts: ['source_id, organization_id, issuer, url', 'tokens', 'tokens is not null'],
  remote_authorizations: ['state_hash, organization_id, session_id', 'details', '1 = 1'],
  remote_oauth_clients: ['source_id, issuer, redirect_uri', 'client', '1 = 1'],
} satisfies Record<keyof typeof sealedContexts, [bound: string, value: string, where: string]>).map(
  ([table, [bound, value, where]]) => ({
    query: `select ${bound}, ${value} as sealed from ${table} where ${where} limit ${lookedAtMax}`,
    contextOf: sealedContexts[table as keyof typeof sealedContexts] as (row: never) => string,
  }),
);

/** An encrypted value as it is stored. */
export interface SealedValue {
  readonly text: string;
  readonly context: string;
}

/** Throws `409 conflict` without a cipher, with a sentence about `things`, such as `API keys`. */
export function encryptValue(
  cipher: Cipher | null,
  text: string,
  context: string,
  things: string,
): string {
  if (cipher !== null) return cipher.encrypt(text, context);
  throw new PlatformError(
    'conflict',
    `${things} are stored encrypted, and there is no key to encrypt them with: set ENCRYPTION_KEY, the same for every process, and start again`,
  );
}

/** The decrypted text, or a sentence that says why `thing`, such as `API key for acme`, cannot be decrypted. */
export function decryptValue(
  cipher: Cipher | null,
  { text, context }: SealedValue,
  thing: string,
): { readonly value: string } | { readonly fault: string } {
  const stored = `The stored ${thing} cannot be decrypted`;
  if (cipher === null) return { fault: `${stored}: ENCRYPTION_KEY is not set` };
  try {
    return { value: cipher.decrypt(text, context) };
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    return { fault: `${stored}: it was stored under another ENCRYPTION_KEY; store it again` };
  }
}
