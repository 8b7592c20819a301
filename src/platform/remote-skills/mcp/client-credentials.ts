/**
 * Tokens of the client credentials grant. A process keeps the token of a source in memory and requests another when the
 * server refuses it. The SDK finds the authorization server, and the secret goes only to the one that the operator named.
 */
import { ClientCredentialsProvider } from '@modelcontextprotocol/client';
import type { RemoteSource } from '../remote-kind.ts';
import type { McpSecrets, McpSettings } from './settings.ts';

/** Sources whose tokens are kept; the oldest is forgotten. */
const keptMax = 200;

export class ClientCredentials {
  readonly #kept = new Map<string, { described: string; provider: ClientCredentialsProvider }>();

  /** Undefined for a source without OAuth. */
  of({ id, settings, secrets }: RemoteSource): ClientCredentialsProvider | undefined {
    const kept = this.#kept;
    const { oauth } = settings as unknown as McpSettings;
    const { client_secret: clientSecret = '' } = secrets as McpSecrets;
    if (oauth === undefined || oauth === null) return undefined;
    if (oauth.grant === 'authorization_code') return undefined;
    const described = JSON.stringify([oauth, clientSecret]);
    const known = kept.get(id);
    if (known?.described === described) return known.provider;
    const { client_id: clientId = '', issuer: expectedIssuer = '', scope } = oauth;
    const provider = new ClientCredentialsProvider({
      clientId,
      clientSecret,
      expectedIssuer,
      clientName: 'Skillwright',
      ...(scope === undefined ? {} : { scope }),
    });
    kept.delete(id);
    if (kept.size >= keptMax) kept.delete(kept.keys().next().value ?? '');
    kept.set(id, { described, provider });
    return provider;
  }
}
