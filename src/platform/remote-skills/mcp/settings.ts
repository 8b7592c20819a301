/** What an operator sets of a server of the Model Context Protocol, and the rules that a JSON Schema cannot express. */
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { checkUrl } from '../../../adapters/egress/url-guard.ts';
import { invalid, PlatformError } from '../../../kernel/errors.ts';
import type { Json } from '../../../kernel/json.ts';
import { whyNotPlain, whyNotPlainArgs } from '../plain-address.ts';
import type { SourceFields } from '../remote-skills.ts';

/** As it is stored. */
export interface McpSettings {
  readonly url: string | null;
  readonly command: string | null;
  readonly args: readonly string[];
  /** The names of what is stored encrypted. */
  readonly header_names: readonly string[];
  readonly env_names: readonly string[];
  /** The secret of its client is stored encrypted. Absent where rows are older. */
  readonly oauth?: OAuthSettings | null;
  readonly timeout_ms: number;
  readonly idempotent_tools: readonly string[];
  readonly trust_annotations: boolean;
}

export interface McpSecrets {
  readonly headers?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly client_secret?: string;
}

type Grant = 'client_credentials' | 'authorization_code';

/** How tokens are had. Rows of earlier versions have no `grant` and are of client credentials. */
export interface OAuthSettings {
  readonly grant?: Grant;
  /** Of the authorization code flow a client is registered where none is named. */
  readonly client_id?: string;
  readonly has_client_secret?: boolean;
  /** The authorization server that may get the secret. */
  readonly issuer?: string;
  readonly scope?: string;
}

export interface OAuthFields extends Omit<OAuthSettings, 'has_client_secret'> {
  readonly client_secret?: string | null;
}

/** Whether organizations connect accounts of their own where the server asks for authorization. */
export function takesAccounts(
  settings: McpSettings,
): settings is McpSettings & { readonly url: string } {
  const { url, oauth, header_names: headers } = settings;
  if (url === null || headers.some((name) => name.toLowerCase() === 'authorization')) return false;
  return oauth === undefined || oauth === null || oauth.grant === 'authorization_code';
}

/**
 * As the API takes it. In `headers`, `env` and `oauth.client_secret` null keeps the stored value, while what gets it is
 * the same: the origin of `url`, the command, the issuer.
 */
export interface McpServerFields {
  readonly organizations?: readonly string[];
  readonly url?: string;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | null>>;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly oauth?: OAuthFields;
  readonly timeout_ms?: number;
  readonly idempotent_tools?: readonly string[];
  readonly trust_annotations?: boolean;
}

export interface McpRules {
  /** Whether the operator allows commands over the API. */
  readonly areCommandsAllowed: boolean;
  readonly allowed: AllowList;
}

/** The stored values, for a change. */
export interface StoredServer {
  readonly settings: McpSettings;
  readonly secrets: McpSecrets;
}

/** The settings and secrets to be stored. Throws `400` for fields that cannot be used. */
export function sourceFieldsOf(
  rules: McpRules,
  fields: McpServerFields,
  stored?: StoredServer,
): SourceFields {
  refuseUnusable(rules, fields);
  const { headers, env, kept } = secretsOf(fields, stored);
  const { client_secret: _, ...oauth } = fields.oauth ?? {};
  const settings: McpSettings = {
    url: fields.url ?? null,
    command: fields.command ?? null,
    args: fields.args ?? [],
    header_names: Object.keys(headers),
    env_names: Object.keys(env),
    oauth:
      fields.oauth === undefined
        ? null
        : {
            ...{ grant: 'client_credentials' as const, ...oauth },
            has_client_secret: kept['client_secret'] !== undefined,
          },
    timeout_ms: fields.timeout_ms ?? 60_000,
    idempotent_tools: fields.idempotent_tools ?? [],
    trust_annotations: fields.trust_annotations ?? false,
  };
  const secrets: Json = {
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(Object.keys(env).length > 0 && { env }),
    ...kept,
  };
  return {
    settings: { ...settings },
    secrets,
    organizations: fields.organizations,
    mayHaveCredentials: whyCredentials(settings),
  };
}

function whyCredentials(settings: McpSettings): string | null {
  const { url, args, header_names: headers, env_names: env, oauth } = settings;
  if (env.length > 0) return 'env may hold credentials';
  if (url === null) return whyNotPlainArgs(args);
  if (headers.length > 0) return 'headers may hold credentials';
  return oauth ? 'oauth obtains credentials' : whyNotPlain('url', url);
}

function secretsOf(fields: McpServerFields, stored?: StoredServer) {
  const { secrets = {}, settings } = stored ?? {};
  const { client_secret } = fields.oauth ?? {};
  const secret = { client_secret: secrets.client_secret };
  const forHeaders = { before: originOf(settings?.url), now: originOf(fields.url) };
  const forEnv = { before: settings?.command, now: fields.command };
  const forSecret = { before: settings?.oauth?.issuer, now: fields.oauth?.issuer };
  const kept: Record<string, string> =
    client_secret === undefined ? {} : merged('oauth', { client_secret }, secret, forSecret);
  return {
    headers: merged('headers', fields.headers ?? {}, secrets.headers, forHeaders),
    env: merged('env', fields.env ?? {}, secrets.env, forEnv),
    kept,
  };
}

const originOf = (url: string | null | undefined) => (url ? new URL(url).origin : undefined);

function refuseUnusable(rules: McpRules, fields: McpServerFields): void {
  const { url, command, args, env, headers, oauth } = fields;
  if ((url === undefined) === (command === undefined)) {
    throw invalid('url', 'or command is required, and not both');
  }
  if (url === undefined) {
    if (headers !== undefined) throw invalid('headers', 'are for a url');
    if (oauth !== undefined) throw invalid('oauth', 'is for a url');
    if (rules.areCommandsAllowed) return;
    throw invalid(
      'command',
      'cannot be set over the API, because it runs on the machine of the platform: the operator has to set MCP_COMMANDS=on',
    );
  }
  if (args !== undefined) throw invalid('args', 'are for a command');
  if (env !== undefined) throw invalid('env', 'is for a command');
  refuseAddress(rules, 'url', url);
  if (oauth !== undefined) refuseUnusableOauth(rules, oauth);
  for (const name of Object.keys(headers ?? {})) {
    if (isReserved(name)) throw invalid(`headers.${name}`, 'is set by the platform');
    if (oauth !== undefined && name.toLowerCase() === 'authorization') {
      throw invalid(`headers.${name}`, 'is set by oauth');
    }
  }
}

function refuseUnusableOauth(rules: McpRules, oauth: OAuthFields): void {
  const { grant = 'client_credentials', issuer } = oauth;
  if (grant === 'client_credentials') {
    for (const field of ['client_id', 'client_secret', 'issuer'] as const) {
      if (oauth[field] === undefined) throw invalid(`oauth.${field}`, `is required for ${grant}`);
    }
  }
  if (oauth.client_secret !== undefined && oauth.client_id === undefined) {
    throw invalid('oauth.client_id', 'is required for a client_secret');
  }
  // Else the server names who gets the client's secret.
  if (oauth.client_id !== undefined && issuer === undefined) {
    throw invalid('oauth.issuer', 'is required for a client_id');
  }
  if (issuer !== undefined) refuseAddress(rules, 'oauth.issuer', issuer);
}

function refuseAddress({ allowed }: McpRules, field: string, url: string): void {
  const schemes = ['https:', 'http:'] as const;
  const checked = checkUrl(url, { schemes, allowed, fragment: 'refused' });
  if (!checked.ok) throw invalid(field, checked.reason);
}

/** Headers that the transport sets. */
const reserved = new Set([
  'accept',
  'connection',
  'content-length',
  'content-type',
  'host',
  'transfer-encoding',
]);

function isReserved(name: string): boolean {
  const lower = name.toLowerCase();
  return reserved.has(lower) || lower.startsWith('mcp-');
}

/** Who got the secrets, and who would get them now. */
interface Receiver {
  readonly before: string | null | undefined;
  readonly now: string | undefined;
}

/** A stored secret is for its receiver alone. */
function merged(
  field: string,
  given: Readonly<Record<string, string | null>>,
  stored: Readonly<Record<string, string | undefined>> = {},
  { before, now }: Receiver,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const kept = value ?? stored[name];
      if (value === null && kept !== undefined && before !== now) {
        throw invalid(
          `${field}.${name}`,
          `is stored for ${before ?? 'no certain issuer'}, and not for ${now ?? 'another'}: give it again`,
        );
      }
      if (kept !== undefined) return [name, kept];
      throw new PlatformError('validation_error', `${field}.${name} has no stored value`, {
        details: [{ field: `${field}.${name}`, issue: 'is null, and there is no stored value' }],
      });
    }),
  );
}
