/** The bodies and responses of `/api/accounts`. */
import { Type } from 'typebox';
import { Nullable, Slug, Timestamp, Words } from '../../../adapters/http/schemas.ts';

const fields = {
  server: Type.String({ description: 'The name of the server.' }),
  category: Type.String({ description: 'The category of its skills, which is also their scope.' }),
  url: Type.String({
    description:
      'The address of the server, without parts that may hold a secret: its query, and a path other than such as /mcp.',
  }),
  status: {
    ...Words(['not_connected', 'connected', 'needs_authorization'] as const),
    description:
      'needs_authorization: runs fail until a person connects the account again; fault says why.',
  },
  fault: Nullable(Type.String()),
  issuer: Nullable(Type.String({ description: 'The authorization server.' })),
  client_id: Nullable(Type.String({ description: 'The platform, as that server knows it.' })),
  scope: Nullable(Type.String({ description: 'What was granted, separated by spaces.' })),
  connected_at: Nullable(Timestamp),
  expires_at: Nullable({
    ...Timestamp,
    description: 'When the access token ends. It is replaced before that where the server allows.',
  }),
};

const example = {
  ...{ server: 'tickets', category: 'mcp-tickets', url: 'https://tickets.example.com/mcp' },
  ...{ status: 'connected', fault: null, issuer: 'https://login.example.com' },
  ...{ client_id: 'client-of-the-platform', scope: 'tickets.read tickets.write' },
  ...{ connected_at: '2026-01-01T00:00:00.000Z', expires_at: '2026-01-01T01:00:00.000Z' },
};

export const Account = Type.Object(fields, {
  title: 'Account',
  description: 'The account of an organization at a server outside, without its tokens.',
  examples: [example],
});

export const Accounts = Type.Object(
  { data: Type.Array(Account), total: Type.Integer() },
  {
    description: 'The servers that ask for accounts, in the scopes of the caller: 200 at most.',
    examples: [{ data: [example], total: 1 }],
  },
);

export const AccountOfOrganization = Type.Object(
  { organization_id: Slug, ...fields },
  { title: 'AccountOfOrganization', examples: [{ organization_id: 'default', ...example }] },
);

export const AccountParams = Type.Object({
  server: Type.String({ description: 'The name of the server.', examples: ['tickets'] }),
});

export const Authorization = Type.Object(
  {
    authorization_url: Type.String({ description: 'Where the browser is to go.' }),
    issuer: Type.String({ description: 'The authorization server.' }),
    expires_at: Timestamp,
  },
  {
    title: 'AccountAuthorization',
    description: 'An authorization that was begun.',
    examples: [
      {
        authorization_url: 'https://login.example.com/authorize?response_type=code',
        issuer: 'https://login.example.com',
        expires_at: '2026-01-01T00:10:00.000Z',
      },
    ],
  },
);

const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

export const AuthorizationAnswer = Type.Object(
  {
    state: Text(500),
    code: Type.Optional(Text(4_096)),
    iss: Type.Optional(Text(2_048)),
    error: Type.Optional(Text(200)),
    error_description: Type.Optional(Text(2_048)),
  },
  {
    title: 'AccountAuthorizationAnswer',
    additionalProperties: false,
    description: 'The parameters with which the authorization server has sent the browser back.',
    examples: [
      { state: 'default.k4Xq', code: 'code-of-the-server', iss: 'https://login.example.com' },
    ],
  },
);
