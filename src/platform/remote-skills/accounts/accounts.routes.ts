/** `/api/accounts`: accounts of an organization at servers outside that require authorization (docs/mcp-servers.md). */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { callerOf, sessionIdOf } from '../../../adapters/http/authenticate.ts';
import { lookUp } from '../../../adapters/http/look-up.ts';
import { adminRefusals, apiRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { Nothing, Page, Paged } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { PlatformError } from '../../../kernel/errors.ts';
import {
  Account,
  Accounts as AccountList,
  AccountOfOrganization,
  AccountParams,
  Authorization,
  AuthorizationAnswer,
} from './accounts.schemas.ts';
import type { Accounts } from './accounts.ts';
import type { BrowserAddress } from './browser-address.ts';

const operation = { tags: ['Accounts'], security: [{ apiKey: [] }] };

export function accountRoutes(server: Server, accounts: Accounts, address: BrowserAddress): void {
  readRoutes(server, accounts);
  connectRoutes(server, accounts, address);
}

/** A hook: an unknown server is 404 and a missing scope 403 before any other check. */
const lookUpServer = (accounts: Accounts) =>
  lookUp('server', (server, caller) => accounts.require(caller, server));

function readRoutes(server: Server, accounts: Accounts): void {
  const listSchema = {
    ...operation,
    operationId: 'listAccounts',
    summary: 'List the accounts that the organization has or could connect, by server',
    response: { 200: AccountList, ...apiRefusals() },
  };
  server.get('/api/accounts', { schema: listSchema }, async (request) => {
    const data = await accounts.list(callerOf(request));
    return { data, total: data.length };
  });
  const getSchema = {
    ...operation,
    operationId: 'getAccount',
    summary: 'Get the account of the organization at a server',
    params: AccountParams,
    response: { 200: Account, ...apiRefusals('not_found', 'insufficient_scope') },
  };
  server.get(
    '/api/accounts/:server',
    { onRequest: lookUpServer(accounts), schema: getSchema },
    (request) => accounts.find(callerOf(request), request.params.server),
  );
}

function connectRoutes(server: Server, accounts: Accounts, address: BrowserAddress): void {
  const onRequest = lookUpServer(accounts);
  const beginSchema = {
    ...operation,
    operationId: 'beginAuthorization',
    summary: 'Begin to connect an account: where the browser is to go',
    description:
      'Only for a session of the console, which has to complete it within ten minutes. Needs the ' +
      'scope of the skills of the server.',
    params: AccountParams,
    response: {
      201: Authorization,
      ...apiRefusals('not_found', 'insufficient_scope', 'conflict', 'upstream_unavailable'),
    },
  };
  server.post(
    '/api/accounts/:server/authorize',
    { onRequest, schema: beginSchema },
    async (request, reply) => {
      const where = { sessionId: requireSession(request), base: address.of(request) };
      const { server: name } = request.params;
      return reply.status(201).send(await accounts.authorize(callerOf(request), name, where));
    },
  );
  const completeSchema = {
    ...operation,
    operationId: 'completeAuthorization',
    summary: 'Complete the connection of an account',
    params: AccountParams,
    body: AuthorizationAnswer,
    response: {
      200: Account,
      ...apiRefusals('not_found', 'insufficient_scope', 'conflict', 'upstream_unavailable'),
      ...apiRefusals(...bodyRefusals),
    },
  };
  server.post(
    '/api/accounts/:server/complete',
    { onRequest, schema: completeSchema },
    (request) => {
      const returned = { ...request.body, sessionId: requireSession(request) };
      return accounts.finish(callerOf(request), request.params.server, returned);
    },
  );
  const deleteSchema = {
    ...operation,
    operationId: 'disconnectAccount',
    summary: 'Disconnect the account of the organization at a server',
    description:
      'Deletes its tokens, and revokes them where the authorization server offers that. Runs of ' +
      'the skills of the server fail from then on.',
    params: AccountParams,
    response: { 204: Nothing, ...apiRefusals('not_found', 'insufficient_scope') },
  };
  server.delete(
    '/api/accounts/:server',
    { onRequest, schema: deleteSchema },
    async (request, reply) => {
      const caller = callerOf(request);
      const source = await accounts.require(caller, request.params.server);
      await accounts.disconnect(source, caller.organizationId);
      return reply.status(204).send(null);
    },
  );
}

function requireSession(request: FastifyRequest): string {
  const session = sessionIdOf(request);
  if (session !== null) return session;
  throw new PlatformError(
    'conflict',
    'An account is connected by a person in the console, under Accounts',
  );
}

const adminOperation = {
  tags: ['MCP servers'],
  security: [{ adminBearer: [] }, { adminHeader: [] }],
};
const NameParams = Type.Object({
  name: Type.String({ description: 'The name of the server.', examples: ['tickets'] }),
});

/** `/admin/mcp-servers/:name/accounts`: the connected accounts, for the operator. */
export function accountAdminRoutes(server: Server, accounts: Accounts): void {
  const onRequest = lookUp('name', (name) => accounts.sourceNamed(name));
  const listSchema = {
    ...adminOperation,
    operationId: 'listMcpServerAccounts',
    summary: 'List the accounts of organizations at an MCP server',
    params: NameParams,
    querystring: Page,
    response: {
      200: Paged(AccountOfOrganization, 'A page of accounts.'),
      ...adminRefusals('not_found'),
    },
  };
  server.get(
    '/admin/mcp-servers/:name/accounts',
    { onRequest, schema: listSchema },
    async ({ params, query: page }) => ({
      ...(await accounts.accountsAt(params.name, page)),
      ...page,
    }),
  );
  const deleteSchema = {
    ...adminOperation,
    operationId: 'disconnectMcpServerAccount',
    summary: 'Disconnect the account of an organization at an MCP server',
    params: Type.Object({
      ...NameParams.properties,
      organizationId: Type.String({ description: 'The organization.' }),
    }),
    response: { 204: Nothing, ...adminRefusals('not_found') },
  };
  server.delete(
    '/admin/mcp-servers/:name/accounts/:organizationId',
    { onRequest, schema: deleteSchema },
    async ({ params }, reply) => {
      const source = await accounts.sourceNamed(params.name);
      await accounts.disconnect(source, params.organizationId);
      return reply.status(204).send(null);
    },
  );
}

/** `/oauth/clients/:server`: the description of the platform as a client, for anyone. */
export function clientMetadataRoutes(server: Server, accounts: Accounts): void {
  const options = { schema: { hide: true, params: AccountParams } };
  server.get('/oauth/clients/:server', options, async ({ params }, reply) =>
    reply.header('cache-control', 'public, max-age=300').send(accounts.metadata(params.server)),
  );
}
