/** An outside server as its form has it, and as the API takes it. */
import type { McpServer, McpServerChange } from '../api/mcp-servers.ts';
import { type CallSettings, callSettings, timeoutOf } from './CallFields.tsx';
import { type NamedSecret, newSecret, secretValues } from './NamedSecrets.tsx';

export const authKinds = [
  { value: 'none', label: 'None, or accounts of organizations where the server asks' },
  { value: 'headers', label: 'Static headers' },
  { value: 'client_credentials', label: 'OAuth client credentials: one token for all' },
  {
    value: 'authorization_code',
    label: 'OAuth authorization code: an account of each organization',
  },
] as const;
type AuthKind = (typeof authKinds)[number]['value'];

export interface McpServerDraft {
  readonly name: string;
  /** `*` alone for all. */
  readonly organizations: readonly string[];
  readonly by: 'address' | 'command';
  readonly url: string;
  readonly auth: AuthKind;
  readonly headers: readonly NamedSecret[];
  readonly clientId: string;
  readonly clientSecret: string;
  readonly hasSecret: boolean;
  readonly issuer: string;
  readonly scope: string;
  readonly command: string;
  /** One a line. */
  readonly args: string;
  readonly env: readonly NamedSecret[];
  readonly calls: CallSettings;
  readonly isTrusted: boolean;
}

/** `organization` is that of the page, to which a new server belongs. */
export function draftOf(server: McpServer | null, organization: string): McpServerDraft {
  const { oauth = null, headers = [], env = [], args = [] } = server ?? {};
  return {
    name: server?.name ?? '',
    organizations: server?.organizations ?? [organization],
    by: server?.command == null ? 'address' : 'command',
    url: server?.url ?? '',
    auth: oauth?.grant ?? (headers.length > 0 ? 'headers' : 'none'),
    headers: headers.map((name) => newSecret(name, true)),
    clientId: oauth?.client_id ?? '',
    clientSecret: '',
    hasSecret: oauth?.has_client_secret ?? false,
    issuer: oauth?.issuer ?? '',
    scope: oauth?.scope ?? '',
    command: server?.command ?? '',
    args: args.join('\n'),
    env: env.map((name) => newSecret(name, true)),
    calls: callSettings(server, server?.idempotent_tools ?? []),
    isTrusted: server?.trust_annotations ?? false,
  };
}

/** What is sent, without the name. */
export function changeOf(draft: McpServerDraft): McpServerChange {
  const { organizations, by, url, command, args, env, headers, calls, isTrusted } = draft;
  const common = {
    organizations: [...organizations],
    ...timeoutOf(calls),
    idempotent_tools: [...calls.retried],
    trust_annotations: isTrusted,
  };
  if (by === 'command') {
    const lines = args.split('\n').filter((line) => line !== '');
    return { ...common, command, args: lines, env: secretValues(env) };
  }
  return { ...common, url, headers: secretValues(headers), ...oauthOf(draft) };
}

function oauthOf(draft: McpServerDraft): Pick<McpServerChange, 'oauth'> {
  const { auth, clientId, clientSecret, hasSecret, issuer, scope } = draft;
  if (auth === 'none' || auth === 'headers') return {};
  const given = {
    ...(clientId !== '' && { client_id: clientId }),
    ...(clientSecret !== '' && { client_secret: clientSecret }),
    ...(clientSecret === '' && hasSecret && clientId !== '' && { client_secret: null }),
    ...(issuer !== '' && { issuer }),
    ...(scope !== '' && { scope }),
  };
  return { oauth: { grant: auth, ...given } };
}
