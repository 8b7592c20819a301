/** What an operator sets of an import, and the rules that a JSON Schema cannot express. */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { checkUrl } from '../../../adapters/egress/url-guard.ts';
import { invalid } from '../../../kernel/errors.ts';
import { type Json, objectOf, parsed } from '../../../kernel/json.ts';
import { whyNotPlain } from '../plain-address.ts';
import type { SourceFields } from '../remote-skills.ts';
import { serverAddresses } from './servers.ts';

/** Bytes of a document that is fetched. */
export const documentBytesMax = 4 * 1024 * 1024;

/** How requests are authorized, without the secret. */
export type StoredAuth =
  | { readonly type: 'none' }
  | { readonly type: 'header' | 'query'; readonly name: string }
  | { readonly type: 'basic'; readonly username: string }
  | {
      readonly type: 'oauth_client_credentials';
      readonly token_url: string;
      readonly client_id: string;
      readonly scope: string | null;
      readonly audience: string | null;
      readonly credentials_in: 'header' | 'body';
    };

/** As it is stored. */
export interface OpenapiSettings {
  /** Null where the document is stored. */
  readonly url: string | null;
  readonly base_url: string | null;
  readonly operations: readonly string[] | null;
  readonly auth: StoredAuth;
  /**
   * The origin that gets the credentials, and no other. Null until the document names it: the first refresh after they
   * were set. Absent where rows are older.
   */
  readonly credentials_origin?: string | null;
  readonly timeout_ms: number;
  /** Operations, such as `POST /orders`, that may be called again whatever their method. */
  readonly idempotent_tools: readonly string[];
  /** The methods of operations say whether a call may be repeated. */
  readonly trust_annotations: true;
}

export interface OpenapiSecrets {
  /** The value of the header or parameter, the password, or the client's secret. */
  readonly value?: string;
  /** User and password as a request carries them, to be kept out of texts in this form too. */
  readonly basic?: string;
}

/** As the API takes it. A secret that is null keeps the stored value, while what gets it is the same. */
interface GivenAuth {
  readonly type: StoredAuth['type'];
  readonly name?: string;
  readonly value?: string | null;
  readonly username?: string;
  readonly password?: string | null;
  readonly token_url?: string;
  readonly client_id?: string;
  readonly client_secret?: string | null;
  readonly scope?: string;
  readonly audience?: string;
  readonly credentials_in?: 'header' | 'body';
}

type AuthField = Exclude<keyof GivenAuth, 'type'>;

/** The fields that each type needs, and those that it may have. */
const fieldsOfAuth: Readonly<
  Record<StoredAuth['type'], { needs: readonly AuthField[]; takes?: readonly AuthField[] }>
> = {
  none: { needs: [] },
  header: { needs: ['name', 'value'] },
  query: { needs: ['name', 'value'] },
  basic: { needs: ['username', 'password'] },
  oauth_client_credentials: {
    needs: ['token_url', 'client_id', 'client_secret'],
    takes: ['scope', 'audience', 'credentials_in'],
  },
};

/** The field that is the secret of each type. */
const secretOfAuth: Readonly<
  Record<StoredAuth['type'], 'value' | 'password' | 'client_secret' | null>
> = {
  none: null,
  header: 'value',
  query: 'value',
  basic: 'password',
  oauth_client_credentials: 'client_secret',
};

/** `document` as null keeps the stored one. */
export interface OpenapiFields {
  readonly document?: string | Json | null;
  readonly organizations?: readonly string[];
  readonly url?: string;
  readonly base_url?: string;
  readonly operations?: readonly string[];
  readonly auth?: GivenAuth;
  readonly timeout_ms?: number;
  readonly retried_operations?: readonly string[];
}

/** The stored values, for a change. */
export interface StoredImport {
  readonly hasDocument: boolean;
  readonly secrets: OpenapiSecrets;
  readonly auth: StoredAuth;
  /** The origin that the secrets are for; null where it is not known yet. */
  readonly origin: string | null;
}

const nothingStored: StoredImport = {
  hasDocument: false,
  secrets: {},
  auth: { type: 'none' },
  origin: null,
};

/** The settings and secrets to be stored. Throws `400` for fields that cannot be used. */
export function sourceFieldsOf(
  allowed: AllowList,
  fields: OpenapiFields,
  stored: StoredImport = nothingStored,
): SourceFields {
  const { document, url, base_url: base, auth = { type: 'none' } } = fields;
  if ((url === undefined) === (document === undefined)) {
    throw invalid('document', 'or url is required, and not both');
  }
  if (document === null && !stored.hasDocument) {
    throw invalid('document', 'is null, and there is no stored document');
  }
  if (url !== undefined) refuseUnusableUrl('url', url, allowed);
  if (base !== undefined) refuseUnusableUrl('base_url', base, allowed);
  if (base?.includes('?')) throw invalid('base_url', 'must not have a query');
  refuseUnusableAuth(auth, allowed);
  refuseOtherReceiver(auth, base, stored);
  const text = document === null ? null : documentText(document);
  const settings: OpenapiSettings = {
    url: url ?? null,
    base_url: base ?? null,
    operations: fields.operations ?? null,
    auth: storedAuth(auth),
    credentials_origin: originFor(auth, base, stored),
    timeout_ms: fields.timeout_ms ?? 60_000,
    idempotent_tools: fields.retried_operations ?? [],
    trust_annotations: true,
  };
  return {
    settings: { ...settings },
    secrets: { ...secretsOf(auth, stored.secrets) },
    organizations: fields.organizations,
    mayHaveCredentials: whyCredentials(settings, text),
    document: document === null ? undefined : text,
  };
}

/**
 * A document of the request has its servers checked unless `base_url` replaces them. Of one at a `url` the address alone is
 * checked: who knows it can read the servers.
 */
function whyCredentials(
  { url, base_url: base, auth }: OpenapiSettings,
  document: string | null,
): string | null {
  if (auth.type !== 'none') return 'auth holds credentials';
  const whyOfUrl = url === null ? null : whyNotPlain('url', url);
  if (whyOfUrl !== null) return whyOfUrl;
  if (base !== null) return whyNotPlain('base_url', base);
  return document === null ? null : whyServersNotPlain(document);
}

/** Why the servers of a document may have a secret, as the end of a sentence; null where they most likely have none. */
function whyServersNotPlain(document: string): string | null {
  const read = objectOf(parsed(document));
  if (read === null) {
    return 'the servers of a document in YAML are not checked for secrets (base_url replaces them)';
  }
  for (const address of serverAddresses(read)) {
    const why = whyNotPlain('a server of document', address);
    if (why !== null) return why;
  }
  return null;
}

function documentText(document: string | Json | undefined): string | null {
  if (document === undefined) return null;
  return typeof document === 'string' ? document : JSON.stringify(document);
}

function refuseUnusableUrl(field: string, url: string, allowed: AllowList): void {
  const checked = checkUrl(url, { schemes: ['https:', 'http:'], allowed, fragment: 'refused' });
  if (!checked.ok) throw invalid(field, checked.reason);
}

function refuseUnusableAuth(auth: GivenAuth, allowed: AllowList): void {
  const { type, name = '', token_url: tokenUrl } = auth;
  const { needs, takes = [] } = fieldsOfAuth[type];
  for (const field of needs) {
    if (auth[field] === undefined) throw invalid(`auth.${field}`, `is required for ${type}`);
  }
  for (const field of Object.keys(auth) as (keyof GivenAuth)[]) {
    if (field === 'type' || needs.includes(field) || takes.includes(field)) continue;
    throw invalid(`auth.${field}`, `is not for ${type}`);
  }
  if (tokenUrl !== undefined) refuseUnusableUrl('auth.token_url', tokenUrl, allowed);
  if (type !== 'header') return;
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) {
    throw invalid('auth.name', 'is no name of a header');
  }
  if (reserved.has(name.toLowerCase())) throw invalid('auth.name', 'is set by the platform');
}

/** Headers of the connection and of the body. */
const reserved = new Set([
  ...['accept', 'connection', 'content-length', 'content-type', 'expect', 'host', 'keep-alive'],
  ...['proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
]);

/** Of fields that were checked. */
function storedAuth(auth: GivenAuth): StoredAuth {
  const { type, name = '', username = '', token_url = '', client_id = '' } = auth;
  const { scope = null, audience = null, credentials_in = 'header' } = auth;
  switch (type) {
    case 'none':
      return { type };
    case 'header':
    case 'query':
      return { type, name };
    case 'basic':
      return { type, username };
    case 'oauth_client_credentials':
      return { type, token_url, client_id, scope, audience, credentials_in };
  }
}

function keepsSecret(auth: GivenAuth): boolean {
  const field = secretOfAuth[auth.type];
  return field !== null && auth[field] === null;
}

/** A stored secret is for the origin that it was set for, and that of OAuth for its server of tokens. */
function refuseOtherReceiver(auth: GivenAuth, base: string | undefined, stored: StoredImport) {
  if (!keepsSecret(auth) || stored.secrets.value === undefined) return;
  const field = `auth.${secretOfAuth[auth.type]}`;
  const refuseUnlessFor = (before: string | null, now: string | null) => {
    if (before === null || before === now) return;
    throw invalid(field, `is stored for ${before}, and not for ${now}: give it again`);
  };
  if (base !== undefined) refuseUnlessFor(stored.origin, new URL(base).origin);
  const before = stored.auth.type === 'oauth_client_credentials' ? stored.auth.token_url : null;
  if (before !== null) refuseUnlessFor(before, auth.token_url ?? 'the service itself');
  else if (auth.token_url !== undefined) {
    refuseUnlessFor(stored.origin ?? 'the service', new URL(auth.token_url).origin);
  }
}

function originFor(auth: GivenAuth, base: string | undefined, stored: StoredImport) {
  if (keepsSecret(auth) && stored.origin !== null) return stored.origin;
  return base === undefined ? null : new URL(base).origin;
}

/** The origin that gets the credentials of an import; null where it is not known yet. */
export function credentialsOriginOf(settings: OpenapiSettings, about: Json): string | null {
  const { credentials_origin: origin, base_url: base } = settings;
  if (origin !== undefined) return origin;
  const address = base ?? about['base_url'];
  return typeof address === 'string' ? (URL.parse(address)?.origin ?? null) : null;
}

/** Why the credentials of an import cannot go to an address; null where they can, and where there are none. */
export function whyOtherOrigin(settings: OpenapiSettings, about: Json, url: string): string | null {
  if (settings.auth.type === 'none') return null;
  const origin = credentialsOriginOf(settings, about);
  const requested = new URL(url).origin;
  if (requested === origin) return null;
  const isFor =
    origin === null
      ? 'it is not known yet what the credentials are for: refresh the import'
      : `the credentials are for ${origin}: activate the version of that address, or set the credentials again`;
  return `The request is for ${requested}, and ${isFor}`;
}

function secretsOf(auth: GivenAuth, stored: OpenapiSecrets): OpenapiSecrets {
  const field = secretOfAuth[auth.type];
  if (field === null) return {};
  const value = auth[field] ?? stored.value;
  if (value === undefined) throw invalid(`auth.${field}`, 'is null, and there is no stored value');
  if (auth.type !== 'basic') return { value };
  const basic = Buffer.from(`${auth.username ?? ''}:${value}`).toString('base64');
  return { value, basic };
}
