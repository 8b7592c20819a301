/** The bodies and responses of `/admin/mcp-servers`. */
import { Type } from 'typebox';
import { Nullable, Timestamp, Words } from '../../../adapters/http/schemas.ts';
import {
  exampleOrganizations,
  OrganizationsField,
  RemoteVersion,
  sourceOrganizations,
  VersionCounts,
} from '../versions.schemas.ts';

const namePattern = '^[a-z0-9]+(-[a-z0-9]+)*$';
const ServerName = Type.String({
  pattern: namePattern,
  maxLength: 50,
  description: 'In kebab case; its skills have the category mcp-<name>.',
});
const Text = (maxLength: number, description: string) =>
  Type.String({ minLength: 1, maxLength, description });
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
          ...{ ...grant, default: 'client_credentials' },
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
              ...{ minLength: 8, maxLength: 4_096 },
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
  timeout_ms: Type.Optional(
    Type.Integer({
      ...{ minimum: 1_000, maximum: 3_600_000, default: 60_000 },
      description:
        'Time limit of one call, of the connection, of the start of a command and of each page of tools.',
    }),
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
  { name: ServerName, ...fields },
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
  name: ServerName,
  category: Type.String({ description: 'The category of its skills, which is also their scope.' }),
  ...sourceOrganizations,
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
  timeout_ms: Type.Integer(),
  idempotent_tools: Tools,
  trust_annotations: Type.Boolean(),
  status: {
    ...Words(['new', 'available', 'failing', 'needs_authorization'] as const),
    description:
      'How the last refresh went; new before the first, needs_authorization where an organization has to connect an account.',
  },
  fault: Nullable(Type.String({ description: 'Why the last refresh failed.' })),
  fault_at: Nullable(Timestamp),
  refreshed_at: Nullable(Timestamp),
  server: Type.Object(
    {
      name: Nullable(Type.String()),
      version: Nullable(Type.String()),
      protocol: Nullable(Type.String()),
      instructions: Nullable(Type.String()),
    },
    { description: 'What the server says of itself; nothing of it is used.' },
  ),
  left_out: Type.Array(Type.Object({ tool: Type.String(), reason: Type.String() }), {
    description: 'Tools that could not become skills: the first 100.',
  }),
  left_out_total: Type.Integer(),
  created_at: Timestamp,
  updated_at: Timestamp,
};

const exampleSummary = {
  ...{ name: 'tickets', category: 'mcp-tickets', url: 'https://tickets.example.com/mcp' },
  ...{ command: null, args: [], headers: ['authorization'], env: [], oauth: null },
  timeout_ms: 60_000,
  ...{ idempotent_tools: [], trust_annotations: false, status: 'available', fault: null },
  ...{ fault_at: null, refreshed_at: '2026-01-01T00:00:00.000Z' },
  server: { name: 'tickets', version: '1.0.0', protocol: '2026-07-28', instructions: null },
  ...{ left_out: [], left_out_total: 0 },
  ...exampleOrganizations,
  ...{ created_at: '2026-01-01T00:00:00.000Z', updated_at: '2026-01-01T00:00:00.000Z' },
};

export const McpServerSummary = Type.Object(
  {
    ...summary,
    skills: VersionCounts,
  },
  {
    title: 'McpServerSummary',
    examples: [
      { ...exampleSummary, skills: { active: 12, quarantined: 1, withdrawn: 0, rejected: 0 } },
    ],
  },
);

export const McpServer = Type.Object(
  { ...summary, skills: Type.Array(RemoteVersion, { description: 'All versions of its skills.' }) },
  {
    title: 'McpServer',
    description: 'The server with the versions of its skills.',
    examples: [{ ...exampleSummary, skills: [] }],
  },
);

const nameParam = Type.String({ description: 'The name of the server.', examples: ['tickets'] });
export const McpServerParams = Type.Object({ name: nameParam });
export const McpSkillParams = Type.Object({
  name: nameParam,
  version: Type.String({ description: 'The version.', examples: ['v1.1'] }),
  skillName: Type.String({ description: 'The name of the skill.', examples: ['create-ticket'] }),
});

export const McpSkillDecision = Type.Object(
  {
    digest: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The digest of the version as it was read; another one is refused.',
    }),
  },
  {
    title: 'McpSkillDecision',
    additionalProperties: false,
    examples: [{ digest: '0'.repeat(64) }],
  },
);
