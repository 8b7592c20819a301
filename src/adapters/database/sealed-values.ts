/**
 * What is stored encrypted, and what each value is bound to: one that was copied to another row cannot be
 * decrypted there. The slices encrypt and decrypt; `skillwright doctor` tries whether a key opens what is stored.
 */
import { type Cipher, DecryptionError } from '../../kernel/encryption.ts';
import { PlatformError } from '../../kernel/errors.ts';

/** The row of a signing secret. */
interface Row {
  readonly id: string;
  readonly organization_id: string;
}

interface CredentialRow {
  readonly organization_id: string;
  readonly provider: string;
  readonly base_url: string | null;
}

interface SettingRow {
  readonly organization_id: string;
  readonly category: string;
  readonly skill_name: string;
  readonly name: string;
  readonly secret: number;
}

interface AccountRow {
  readonly organization_id: string;
  readonly source_id: string;
  readonly issuer: string;
  readonly url: string;
}

interface AuthorizationRow {
  readonly organization_id: string;
  readonly state_hash: string;
  readonly session_id: string;
}

interface OauthClientRow {
  readonly source_id: string;
  readonly issuer: string;
  readonly redirect_uri: string;
}

/** Of a signing secret. */
export function signingContext(table: 'webhooks' | 'agent_triggers', row: Row): string {
  return JSON.stringify([table, row.organization_id, row.id]);
}

/** Bound to the base url too: an attacker who changes it in the database does not get the key sent there. */
export function credentialContext({ organization_id, provider, base_url }: CredentialRow): string {
  return JSON.stringify(['credentials', organization_id, provider, base_url]);
}

export function settingContext(row: SettingRow): string {
  const { organization_id, category, skill_name, name, secret } = row;
  return JSON.stringify(['skill_settings', organization_id, category, skill_name, name, secret]);
}

/** Of the secrets of a source of remote skills. */
export function sourceContext({ id }: { readonly id: string }): string {
  return JSON.stringify(['remote_sources', id]);
}

export function accountContext({ source_id, organization_id, issuer, url }: AccountRow): string {
  return JSON.stringify(['remote_accounts', source_id, organization_id, issuer, url]);
}

export function authorizationContext(row: AuthorizationRow): string {
  const { state_hash, organization_id, session_id } = row;
  return JSON.stringify(['remote_authorizations', state_hash, organization_id, session_id]);
}

export function oauthClientContext({ source_id, issuer, redirect_uri }: OauthClientRow): string {
  return JSON.stringify(['remote_oauth_clients', source_id, issuer, redirect_uri]);
}

/** Values of each table that `sealedValues` reads. */
const readMax = 200;

/** For each table a query of some encrypted values, as `sealed`, with the function of their context. */
export const sealedValues = [
  sealedIn('webhooks', 'id, organization_id', 'secret', 'secret_sealed = 1', (row: Row) =>
    signingContext('webhooks', row),
  ),
  sealedIn(
    'agent_triggers',
    'id, organization_id',
    'signing_secret',
    'secret_sealed = 1',
    (row: Row) => signingContext('agent_triggers', row),
  ),
  sealedIn(
    'credentials',
    'organization_id, provider, base_url',
    'api_key',
    'api_key is not null',
    credentialContext,
  ),
  sealedIn(
    'skill_settings',
    'organization_id, category, skill_name, name, secret',
    'value',
    '1 = 1',
    settingContext,
  ),
  sealedIn('remote_sources', 'id', 'secrets', 'secrets is not null', sourceContext),
  sealedIn(
    'remote_accounts',
    'source_id, organization_id, issuer, url',
    'tokens',
    'tokens is not null',
    accountContext,
  ),
  sealedIn(
    'remote_authorizations',
    'state_hash, organization_id, session_id',
    'details',
    '1 = 1',
    authorizationContext,
  ),
  sealedIn(
    'remote_oauth_clients',
    'source_id, issuer, redirect_uri',
    'client',
    '1 = 1',
    oauthClientContext,
  ),
];

function sealedIn(
  table: string,
  bound: string,
  value: string,
  where: string,
  contextOf: (row: never) => string,
) {
  const query = `select ${bound}, ${value} as sealed from ${table} where ${where} limit ${readMax}`;
  return { query, contextOf };
}

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

/**
 * The decrypted text, or a sentence that says why `thing`, such as `API key for acme`, cannot be decrypted. `otherKey` ends the
 * sentence where the key was another one.
 */
export function decryptValue(
  cipher: Cipher | null,
  { text, context }: SealedValue,
  thing: string,
  otherKey = 'it was stored under another ENCRYPTION_KEY; store it again',
): { readonly value: string } | { readonly fault: string } {
  const stored = `The stored ${thing} cannot be decrypted`;
  if (cipher === null) return { fault: `${stored}: ENCRYPTION_KEY is not set` };
  try {
    return { value: cipher.decrypt(text, context) };
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    return { fault: `${stored}: ${otherKey}` };
  }
}
