/** The bodies and responses of `/admin/openapi-imports`. */
import { Type } from 'typebox';
import { FreeObject, Nullable, Words } from '../../../adapters/http/schemas.ts';
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

const Url = (description: string) => Text(2_048, description);
const Secret = (description: string) =>
  Nullable(
    Type.String({
      pattern: '^[!-~]([ -~]*[!-~])?$',
      maxLength: 8_192,
      description: `${description} Stored encrypted and never shown; null keeps the stored value.`,
    }),
  );
const Operations = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 500 }), { maxItems: 500, description });

const authTypes = ['none', 'header', 'query', 'basic', 'oauth_client_credentials'] as const;
const credentialsIn = Words(['header', 'body'] as const);

/** One object instead of a union, so that a refusal can name the field. `settings.ts` knows the fields of each type. */
const Auth = Type.Object(
  {
    type: { ...Words(authTypes), description: 'What the other fields are.' },
    name: Type.Optional(Text(100, 'The header, or the parameter of the query.')),
    value: Type.Optional(Secret('Its value, such as Bearer and a token.')),
    username: Type.Optional(
      Type.String({ pattern: '^[^:\\x00-\\x1f]*$', maxLength: 500, description: 'For basic.' }),
    ),
    password: Type.Optional(Secret('For basic.')),
    token_url: Type.Optional(Url('Where tokens are asked for.')),
    client_id: Type.Optional(Text(500, 'The client.')),
    client_secret: Type.Optional(Secret('Its secret.')),
    scope: Type.Optional(Text(2_000, 'Scopes, separated by spaces.')),
    audience: Type.Optional(Text(2_000, 'What the token is for, where the server asks.')),
    credentials_in: Type.Optional({
      ...credentialsIn,
      default: 'header',
      description: 'How client and secret are sent.',
    }),
  },
  {
    additionalProperties: false,
    description: 'How requests are authorized; not at all when left out.',
  },
);

const fields = {
  organizations: OrganizationsField,
  document: Type.Optional(
    Type.Union([Type.String({ minLength: 1 }), FreeObject, Type.Null()], {
      description:
        'The document, as an object or as a text in JSON or YAML; null keeps the stored one.',
    }),
  ),
  url: Type.Optional(Url('Where the document is fetched, at once and at each refresh.')),
  base_url: Type.Optional(Url('Where the operations are; what the document says when left out.')),
  operations: Type.Optional(
    Operations(
      'The operations to import, each by its operationId or as GET /path; all when left out.',
    ),
  ),
  auth: Type.Optional(Auth),
  timeout_ms: TimeoutMs('Time limit of one call, and of fetching the document.'),
  retried_operations: Type.Optional(
    Operations(
      'Operations, as POST /path, that may be called again after a failure although their method does not say so.',
    ),
  ),
};

export const NewOpenapiImport = Type.Object(
  { name: SourceName('api'), ...fields },
  {
    title: 'NewOpenApiImport',
    additionalProperties: false,
    examples: [
      {
        name: 'orders',
        organizations: ['acme'],
        url: 'https://orders.example.com/openapi.json',
        auth: { type: 'header', name: 'authorization', value: 'Bearer token-from-the-provider' },
      },
    ],
  },
);

export const OpenapiImportChange = Type.Object(fields, {
  title: 'OpenApiImportChange',
  additionalProperties: false,
  examples: [
    {
      organizations: ['*'],
      url: 'https://orders.example.com/openapi.json',
      auth: { type: 'header', name: 'authorization', value: null },
      timeout_ms: 30_000,
    },
  ],
});

const StoredAuth = Type.Union(
  [
    Type.Object({ type: Type.Literal('none') }),
    Type.Object({ type: Words(['header', 'query'] as const), name: Type.String() }),
    Type.Object({ type: Type.Literal('basic'), username: Type.String() }),
    Type.Object({
      type: Type.Literal('oauth_client_credentials'),
      token_url: Type.String(),
      client_id: Type.String(),
      scope: Nullable(Type.String()),
      audience: Nullable(Type.String()),
      credentials_in: credentialsIn,
    }),
  ],
  { description: 'How requests are authorized, without the secret.' },
);

const summary = {
  ...sourceFields('api', 'Operations'),
  url: Nullable(Type.String({ description: 'Null where the document is stored.' })),
  base_url: Nullable(Type.String({ description: 'Where the operations are.' })),
  is_base_url_set: Type.Boolean({
    description: 'Whether base_url was set, or is that of the document.',
  }),
  operations: Nullable(Operations('The operations that were chosen; null for all.')),
  auth: StoredAuth,
  retried_operations: Operations('Operations that may be called again whatever their method.'),
  status: {
    ...Words(['new', 'available', 'failing'] as const),
    description: 'How the last refresh went; new before the first.',
  },
  document: Type.Object(
    {
      title: Nullable(Type.String()),
      version: Nullable(Type.String()),
      openapi: Nullable(Type.String({ description: 'The version of OpenAPI.' })),
    },
    { description: 'What the document says of itself.' },
  ),
};

const exampleSummary = {
  ...exampleSource,
  name: 'orders',
  category: 'api-orders',
  url: 'https://orders.example.com/openapi.json',
  base_url: 'https://orders.example.com/v2',
  is_base_url_set: false,
  operations: null,
  auth: { type: 'header', name: 'authorization' },
  retried_operations: [],
  document: { title: 'Orders', version: '2.3.0', openapi: '3.1.0' },
};

export const OpenapiImportSummary = Type.Object(
  { ...summary, skills: VersionCounts },
  { title: 'OpenApiImportSummary', examples: [{ ...exampleSummary, skills: exampleCounts }] },
);

export const OpenapiImport = Type.Object(
  { ...summary, skills: Type.Array(RemoteVersion, { description: 'All versions of its skills.' }) },
  {
    title: 'OpenApiImport',
    description: 'The import with the versions of its skills.',
    examples: [{ ...exampleSummary, skills: [] }],
  },
);

export const Decisions = Type.Object(
  {
    versions: Type.Array(
      Type.Object(
        {
          skill_name: Type.String({ maxLength: 64 }),
          version: Type.String({ maxLength: 20 }),
          digest: ReadDigest,
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 500, description: 'The versions, in this order.' },
    ),
  },
  {
    title: 'OpenApiDecisions',
    additionalProperties: false,
    examples: [
      { versions: [{ skill_name: 'create-order', version: 'v1.1', digest: '0'.repeat(64) }] },
    ],
  },
);

export const DocumentPreview = Type.Object(
  {
    name: Type.Optional(
      Type.String({
        description: 'An import whose stored document and secrets are used for null.',
      }),
    ),
    document: fields.document,
    url: fields.url,
    base_url: fields.base_url,
    auth: fields.auth,
  },
  {
    title: 'OpenApiPreviewRequest',
    additionalProperties: false,
    examples: [{ url: 'https://orders.example.com/openapi.json' }],
  },
);

export const PreviewedOperations = Type.Object(
  {
    title: Nullable(Type.String({ description: 'What the document calls itself.' })),
    operations: Type.Array(
      Type.Object({
        operation: Type.String({ description: 'Method and path, such as GET /orders.' }),
        operation_id: Nullable(Type.String()),
        summary: Nullable(Type.String()),
      }),
    ),
    total: Type.Integer({ description: 'Operations of the document; the first 2,000 are listed.' }),
  },
  {
    title: 'OpenApiPreview',
    description: 'The operations of a document.',
    examples: [
      {
        title: 'Orders',
        operations: [
          { operation: 'GET /orders', operation_id: 'listOrders', summary: 'List orders' },
        ],
        total: 1,
      },
    ],
  },
);

export const ImportParams = SourceParams('import', 'orders');
export const ImportSkillParams = SourceSkillParams('import', 'orders', 'create-order');
