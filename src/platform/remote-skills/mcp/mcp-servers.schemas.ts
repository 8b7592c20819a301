/** The bodies and responses of `/admin/mcp-servers`. */
import { Type } from 'typebox';
import { Nullable, Words } from '../../../adapters/http/schemas.ts';
import {
  exampleCounts,
  exampleSource,
  OrganizationsField,
  ReadDigest,
  RemoteVersion,
  SourceName,
  SourceParams,
  SourceSkillParams,
  sourceFields,
  Text,
  TimeoutMs,
  VersionCounts,
} from '../versions.schemas.ts';

const Tools = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  maxItems: 500,
  description: 'Tools, by their names at the server, that may be called again after a failure.',
});

const grant = Words(['client_credentials', 'authorization_code'] as const);

const fields = {
  organizations: OrganizationsField,
  url: Type.Optional(Text(2_048, 'Its address, http or https.')),
  command: Type.Optional(
    Text(1_024, 'A program that speaks the protocol on its standard input and output.'),
  ),
  args: Type.Optional(
    Type.Array(Type.String({ maxLength: 4_096 }), {
      maxItems: 100,
      description: 'Arguments of the command.',
    }),
  ),
  env: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,99}$' }),
      Nullable(Type.String({ maxLength: 8_192 })),
      {
        maxProperties: 50,
        description:
          'Environment of the command, stored encrypted and never shown; null keeps the stored value for the same command.',
      },
    ),
  ),
  headers: Type.Optional(
    Type.Record(
      Type.String({ pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" }),
      Nullable(Type.String({ pattern: '^[!-~]([ -~]*[!-~])?$', maxLength: 8_192 })),
      {
        maxProperties: 50,
        description:
          'Headers of each request, stored encrypted and never shown; null keeps the stored value for the same origin.',
      },
    ),
  ),
  oauth: Type.Optional(
    Type.Object(
      {
        grant: Type.Optional({
          ...grant,
          default: 'client_credentials',
          description:
            'client_credentials: the platform has a token of its own. authorization_code: each organization connects an account of its own in the console.',
        }),
        client_id: Type.Optional(
          Text(
            500,
            'The id of the client; required for client_credentials. For authorization_code one is registered where it is left out.',
          ),
        ),
        client_secret: Type.Optional(
          Nullable(
            Type.String({
              minLength: 8,
              maxLength: 4_096,
              description:
                'Required for client_credentials. Stored encrypted and never shown; null keeps the stored value for the same issuer.',
            }),
          ),
        ),
        issuer: Type.Optional(
          Text(
            2_048,
            'The authorization server, required with a client_id: client and secret are sent to no other.',
          ),
        ),
        scope: Type.Optional(Text(1_000, 'Scopes to ask for, separated by spaces.')),
      },
      {
        title: 'McpServerOAuth',
        additionalProperties: false,
        description: 'For a server that takes tokens of an authorization server.',
      },
    ),
  ),
  timeout_ms: TimeoutMs(
    'Time limit of one call, of the connection, of the start of a command and of each page of tools.',
  ),
  idempotent_tools: Type.Optional(Tools),
  trust_annotations: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Whether a tool that calls itself idempotent or read-only may be called again after a failure.',
    }),
  ),
};

export const NewMcpServer = Type.Object(
  { name: SourceName('mcp'), ...fields },
  {
    title: 'NewMcpServer',
    additionalProperties: false,
    examples: [
      {
        name: 'tickets',
        organizations: ['acme'],
        url: 'https://tickets.example.com/mcp',
        headers: { authorization: 'Bearer token-from-the-provider' },
      },
    ],
  },
);
export const McpServerChange = Type.Object(fields, {
  title: 'McpServerChange',
  additionalProperties: false,
  examples: [
    {
      organizations: ['acme', 'globex'],
      url: 'https://tickets.example.com/mcp',
      headers: { authorization: null },
      timeout_ms: 30_000,
    },
  ],
});

const summary = {
  ...sourceFields('mcp', 'Tools'),
  url: Nullable(Type.String()),
  command: Nullable(Type.String()),
  args: Type.Array(Type.String()),
  headers: Type.Array(Type.String(), { description: 'The names of the stored headers.' }),
  env: Type.Array(Type.String(), { description: 'The names of the stored variables.' }),
  oauth: Nullable(
    Type.Object(
      {
        grant,
        client_id: Nullable(Type.String()),
        has_client_secret: Type.Boolean(),
        issuer: Nullable(Type.String()),
        scope: Type.Optional(Type.String()),
      },
      { description: 'Without the secret.' },
    ),
  ),
  idempotent_tools: Tools,
  trust_annotations: Type.Boolean(),
  status: {
    ...Words(['new', 'available', 'failing', 'needs_authorization'] as const),
    description:
      'How the last refresh went; new before the first, needs_authorization where an organization has to connect an account.',
  },
  server: Type.Object(
    {
      name: Nullable(Type.String()),
      version: Nullable(Type.String()),
      protocol: Nullable(Type.String()),
      instructions: Nullable(Type.String()),
    },
    { description: 'What the server says of itself; nothing of it is used.' },
  ),
};

const exampleSummary = {
  ...exampleSource,
  name: 'tickets',
  category: 'mcp-tickets',
  url: 'https://tickets.example.com/mcp',
  command: null,
  args: [],
  headers: ['authorization'],
  env: [],
  oauth: null,
  idempotent_tools: [],
  trust_annotations: false,
  server: { name: 'tickets', version: '1.0.0', protocol: '2026-07-28', instructions: null },
};

export const McpServerSummary = Type.Object(
  { ...summary, skills: VersionCounts },
  { title: 'McpServerSummary', examples: [{ ...exampleSummary, skills: exampleCounts }] },
);

export const McpServer = Type.Object(
  { ...summary, skills: Type.Array(RemoteVersion, { description: 'All versions of its skills.' }) },
  {
    title: 'McpServer',
    description: 'The server with the versions of its skills.',
    examples: [{ ...exampleSummary, skills: [] }],
  },
);

export const McpServerParams = SourceParams('server', 'tickets');
export const McpSkillParams = SourceSkillParams('server', 'tickets', 'create-ticket');

export const McpSkillDecision = Type.Object(
  { digest: ReadDigest },
  {
    title: 'McpSkillDecision',
    additionalProperties: false,
    examples: [{ digest: '0'.repeat(64) }],
  },
);
