/** `/admin/organizations/:organizationId/credentials`: organizations' own credentials of providers. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { lookUp } from '../../adapters/http/look-up.ts';
import { adminRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import {
  Nothing,
  Nullable,
  Page,
  Paged,
  Slug,
  Timestamp,
  Words,
} from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { baseUrlMax } from '../../kernel/base-url.ts';
import { type Credentials, credentialProtocols } from './credentials.ts';

const tags = ['Credentials'];
const security = [{ adminBearer: [] }, { adminHeader: [] }];

const Credential = Type.Object(
  {
    organization_id: Slug,
    provider: Slug,
    base_url: Nullable(Type.String()),
    protocol: Nullable(Words(credentialProtocols)),
    has_api_key: Type.Boolean({ description: 'Whether an API key is stored; it is never shown.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  {
    title: 'Credential',
    description: 'The credentials, without the API key.',
    examples: [
      {
        organization_id: 'default',
        provider: 'openai',
        base_url: null,
        protocol: null,
        has_api_key: true,
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      },
    ],
  },
);

const NewCredential = Type.Object(
  {
    api_key: Type.Optional(
      Nullable(
        Type.String({
          // It is sent in a header.
          pattern: '^[!-~]+$',
          maxLength: 4_096,
          description: 'Visible ASCII characters; null for a provider that requires none.',
        }),
      ),
    ),
    base_url: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: baseUrlMax,
          description: "An http or https url; null for the platform's address of the provider.",
        }),
      ),
    ),
    protocol: Type.Optional(
      Nullable({
        ...Words(credentialProtocols),
        description: 'What the provider speaks; null for what is usual at its address.',
      }),
    ),
  },
  {
    title: 'NewCredential',
    additionalProperties: false,
    examples: [{ api_key: 'sk-from-the-provider' }],
  },
);

const organizationId = Type.String({ description: 'The organization.' });
const OrganizationParams = Type.Object({ organizationId });
const Params = Type.Object({
  organizationId,
  provider: Type.String({ description: 'The name of the model provider.' }),
});

export function credentialRoutes(
  server: Server,
  { credentials }: { credentials: Credentials },
): void {
  listCredentialsRoute(server, credentials);
  replaceCredentialRoute(server, credentials);
  deleteCredentialRoute(server, credentials);
}

/** An unknown organization is 404 before anything else is validated (docs/decisions/order-of-checks.md). */
const lookUpOrganization = (credentials: Credentials) =>
  lookUp('organizationId', (id) => credentials.requireOrganization(id));

function lookUpCredential(credentials: Credentials) {
  return async (request: FastifyRequest) => {
    const named = request.params as { organizationId: string; provider: string };
    await credentials.find(named.organizationId, named.provider);
  };
}

function listCredentialsRoute(server: Server, credentials: Credentials): void {
  server.get(
    '/admin/organizations/:organizationId/credentials',
    {
      onRequest: lookUpOrganization(credentials),
      schema: {
        tags,
        security,
        operationId: 'listCredentials',
        summary: 'List the credentials of an organization, newest first',
        params: OrganizationParams,
        querystring: Page,
        response: {
          200: Paged(Credential, 'A page of credentials.'),
          ...adminRefusals('not_found'),
        },
      },
    },
    async (request) => {
      const { params, query: page } = request;
      const { credentials: data, total } = await credentials.list(params.organizationId, page);
      return { data, total, ...page };
    },
  );
}

function replaceCredentialRoute(server: Server, credentials: Credentials): void {
  server.put(
    '/admin/organizations/:organizationId/credentials/:provider',
    {
      onRequest: lookUpOrganization(credentials),
      schema: {
        tags,
        security,
        operationId: 'replaceCredential',
        summary: 'Store the credentials of an organization for a provider of models',
        description:
          'Replaces the stored credentials of the provider: omitted fields are deleted. ' +
          'The API key is stored encrypted and never shown.',
        params: Params,
        body: NewCredential,
        response: { 200: Credential, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
      },
    },
    ({ params, body }) => credentials.replace(params.organizationId, params.provider, body),
  );
}

function deleteCredentialRoute(server: Server, credentials: Credentials): void {
  server.delete(
    '/admin/organizations/:organizationId/credentials/:provider',
    {
      onRequest: lookUpCredential(credentials),
      schema: {
        tags,
        security,
        operationId: 'deleteCredential',
        summary:
          "Delete the credentials of an organization for a provider; the platform's apply again",
        params: Params,
        response: { 204: Nothing, ...adminRefusals('not_found') },
      },
    },
    async ({ params }, reply) => {
      await credentials.remove(params.organizationId, params.provider);
      return reply.status(204).send(null);
    },
  );
}
