/** `/admin/api-keys` (specification: Admin API keys). */
import { Type } from 'typebox';
import { expiryOf } from '../../adapters/http/future-moment.ts';
import { lookUp } from '../../adapters/http/look-up.ts';
import { adminRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import {
  Id,
  MaxConcurrency,
  Name,
  Nullable,
  Slug,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import type { OpenStreams } from '../../adapters/http/streams.ts';
import type { Clock } from '../../kernel/clock.ts';
import { invalid } from '../../kernel/errors.ts';
import type { ApiKeys } from './api-keys.ts';

const operation = { tags: ['API keys'], security: [{ adminBearer: [] }, { adminHeader: [] }] };

const Scopes = Type.Array(Type.String({ pattern: '^([a-z0-9][a-z0-9-]{0,62}|\\*)$' }), {
  minItems: 1,
  maxItems: 200,
  uniqueItems: true,
  description: 'Skill categories that the key may use, or "*" alone for all.',
});
const RateLimit = Type.Integer({ minimum: 1, maximum: 1_000_000 });
/** The specification's bodies of keys have no such field, so only a key that has a limit shows it. */
const KeptConcurrency = Type.Integer({
  minimum: 1,
  description: 'Runs at a time. Left out without a limit.',
});
const key = {
  id: Id,
  organization_id: Slug,
  client_name: Name(),
  scopes: Scopes,
  rate_limit: RateLimit,
  max_concurrency: Type.Optional(KeptConcurrency),
  enabled: Type.Boolean(),
  created_at: Timestamp,
};
const example = {
  id: '01990a5e-7c1b-7000-8f1e-0c5a7e9b2d11',
  organization_id: 'default',
  client_name: 'nightly reports',
  scopes: ['text', 'web'],
  rate_limit: 100,
  enabled: true,
  created_at: '2026-01-01T00:00:00.000Z',
};

const ApiKey = Type.Object({ ...key, expires_at: Nullable(Timestamp) }, { title: 'ApiKey' });

const NewApiKey = Type.Object(
  {
    client_name: Name(),
    scopes: Scopes,
    rate_limit: Type.Optional({ ...RateLimit, default: 100 }),
    max_concurrency: Type.Optional(MaxConcurrency),
    expires_at: Type.Optional(Timestamp),
    organization_id: Type.Optional(Slug),
  },
  {
    title: 'NewApiKey',
    additionalProperties: false,
    examples: [{ client_name: 'nightly reports', scopes: ['text', 'web'], rate_limit: 100 }],
  },
);

const createSchema = {
  ...operation,
  operationId: 'createApiKey',
  summary: 'Create an API key',
  description: 'Only this response shows the key.',
  body: NewApiKey,
  response: {
    201: Type.Object(
      { ...key, plaintext_key: Type.String() },
      {
        title: 'IssuedApiKey',
        description: 'The new key.',
        examples: [{ ...example, plaintext_key: 'sk_<43 characters>' }],
      },
    ),
    ...adminRefusals('conflict', ...bodyRefusals),
  },
};
const listSchema = {
  ...operation,
  operationId: 'listApiKeys',
  summary: 'List all API keys, newest first',
  response: {
    200: Type.Array(ApiKey, {
      description: 'All keys, revoked ones included, without the key itself or its hash.',
      examples: [[{ ...example, expires_at: null }]],
    }),
    ...adminRefusals(),
  },
};
const revokeSchema = {
  ...operation,
  operationId: 'revokeApiKey',
  summary: 'Revoke an API key permanently',
  description:
    'Queued jobs of the key end as cancelled. Active jobs continue without models ' +
    'and tools, unless cancel_jobs is true. To cancel them later, revoke the key again.',
  params: Type.Object({ id: { ...Id, description: 'The id of the key.' } }),
  querystring: Type.Object({
    cancel_jobs: Type.Optional({
      ...Words(['true', 'false']),
      description: 'true: active jobs of the key are cancelled too.',
    }),
  }),
  response: {
    200: Type.Object(
      { message: Type.String(), id: Id },
      {
        description: 'The key no longer authenticates any request.',
        examples: [{ message: 'The API key is revoked', id: example.id }],
      },
    ),
    ...adminRefusals('not_found'),
  },
};

/** `endJobsOfKey` ends the jobs of a revoked key. */
export function apiKeyRoutes(
  server: Server,
  apiKeys: ApiKeys,
  clock: Clock,
  streams: OpenStreams,
  endJobsOfKey: (keyId: string, options: { cancelActive: boolean }) => Promise<void>,
) {
  server.post('/admin/api-keys', { schema: createSchema }, async (request, reply) => {
    const { expires_at, ...fields } = request.body;
    if (fields.scopes.includes('*') && fields.scopes.length > 1) {
      throw invalid('scopes', 'must hold * alone or categories without it');
    }
    const expiry = expires_at !== undefined && {
      expires_at: expiryOf(expires_at, clock.now()),
    };
    return reply.status(201).send(await apiKeys.issue({ ...fields, ...expiry }));
  });
  server.get('/admin/api-keys', { schema: listSchema }, async (_request, reply) => {
    const keys = await apiKeys.list();
    return reply.header('x-total-count', keys.length).send(keys);
  });
  /** An unknown key is 404 before any other check (docs/decisions/order-of-checks.md). */
  const onRequest = lookUp('id', (id) => apiKeys.organizationOf(id));
  const revokeOptions = { onRequest, schema: revokeSchema };
  server.delete('/admin/api-keys/:id', revokeOptions, async ({ params, query }) => {
    const revoked = await apiKeys.revoke(params.id);
    streams.endThoseOf(revoked.id);
    await endJobsOfKey(revoked.id, { cancelActive: query.cancel_jobs === 'true' });
    return revoked;
  });
}
