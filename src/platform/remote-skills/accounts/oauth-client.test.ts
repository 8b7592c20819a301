import { afterAll, expect, test } from 'vitest';
import { parseAllowList } from '../../../adapters/egress/allow-list.ts';
import { OauthClient } from './oauth-client.ts';

const oauth = new OauthClient(parseAllowList(''));
afterAll(() => oauth.close());

/** As an earlier version has stored it, which did not check all endpoints. */
const metadata = {
  issuer: 'https://login.example',
  authorization_endpoint: 'https://login.example/authorize',
  token_endpoint: 'http://login.example/token',
  registration_endpoint: 'http://login.example/register',
  revocation_endpoint: 'http://login.example/revoke',
  response_types_supported: ['code'],
};
const from = { metadata, resource: 'https://tickets.example/mcp' };
const client = { client_id: 'client-1', client_secret: 'secret-of-the-client' };
const code = { code: 'c', iss: undefined, verifier: 'v', redirectUri: 'https://us.example/back' };

test.each([
  ['registers no client', () => oauth.register(metadata, {})],
  ['exchanges no code', () => oauth.exchange(from, client, code)],
  ['refreshes no token', () => oauth.refresh(from, client, 'refresh-1')],
  ['revokes no token', () => oauth.revoke(from, client, { access_token: 'access-1' })],
])('the platform %s at a stored endpoint without TLS', async (_name, act) => {
  await expect(act()).rejects.toThrow(/not https|non-https/);
});
