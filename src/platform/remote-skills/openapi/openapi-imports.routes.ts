/** `/admin/openapi-imports`: OpenAPI documents whose operations are skills (docs/openapi-imports.md). */
import { adminRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import { Nothing, Page, Paged } from '../../../adapters/http/schemas.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { requireSource } from '../require-source.ts';
import { PinnedVersion } from '../versions.schemas.ts';
import {
  Decisions,
  DocumentPreview,
  ImportParams,
  ImportSkillParams,
  NewOpenapiImport,
  OpenapiImport,
  OpenapiImportChange,
  OpenapiImportSummary,
  PreviewedOperations,
} from './imports.schemas.ts';
import type { OpenapiImports } from './openapi-imports.ts';
import { documentBytesMax } from './settings.ts';

const operation = {
  tags: ['OpenAPI imports'],
  security: [{ adminBearer: [] }, { adminHeader: [] }],
};
/** A document, and what JSON adds to it where it is a text. */
const bodyLimit = 2 * documentBytesMax;

export function openapiImportRoutes(server: Server, openapiImports: OpenapiImports): void {
  listRoutes(server, openapiImports);
  changeRoutes(server, openapiImports);
  versionRoutes(server, openapiImports);
  previewRoute(server, openapiImports);
}

function listRoutes(server: Server, imports: OpenapiImports): void {
  const listSchema = {
    ...operation,
    operationId: 'listOpenApiImports',
    summary: 'List the OpenAPI documents whose operations are skills, by name',
    querystring: Page,
    response: { 200: Paged(OpenapiImportSummary, 'A page of imports.'), ...adminRefusals() },
  };
  server.get('/admin/openapi-imports', { schema: listSchema }, async ({ query: page }) => ({
    ...(await imports.list(page)),
    ...page,
  }));
  const getSchema = {
    ...operation,
    operationId: 'getOpenApiImport',
    summary: 'Get an OpenAPI import with its skills and what has changed of them',
    params: ImportParams,
    response: { 200: OpenapiImport, ...adminRefusals('not_found') },
  };
  server.get(
    '/admin/openapi-imports/:name',
    { onRequest: requireSource(imports), schema: getSchema },
    ({ params }) => imports.find(params.name),
  );
}

function changeRoutes(server: Server, imports: OpenapiImports): void {
  const addSchema = {
    ...operation,
    operationId: 'addOpenApiImport',
    summary: 'Import an OpenAPI document, whose operations become skills',
    description:
      'Its operations are active at once. A document that cannot be read is added too, with its ' +
      'fault. The body may have 8 MiB, the document 4 MiB.',
    body: NewOpenapiImport,
    response: { 201: OpenapiImport, ...adminRefusals('conflict', ...bodyRefusals) },
  };
  const path = '/admin/openapi-imports';
  server.post(path, { schema: addSchema, bodyLimit }, async ({ body }, reply) => {
    const { name, ...given } = body;
    return reply.status(201).send(await imports.add(name, given));
  });
  const replaceSchema = {
    ...operation,
    operationId: 'replaceOpenApiImport',
    summary: 'Change an OpenAPI import, and refresh it',
    description: 'Replaces all that was set: omitted fields have their defaults again.',
    params: ImportParams,
    body: OpenapiImportChange,
    response: { 200: OpenapiImport, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.put(
    `${path}/:name`,
    { onRequest: requireSource(imports), schema: replaceSchema, bodyLimit },
    ({ params, body }) => imports.replace(params.name, body),
  );
  const deleteSchema = {
    ...operation,
    operationId: 'deleteOpenApiImport',
    summary: 'Remove an OpenAPI import; its skills become inactive',
    params: ImportParams,
    response: { 204: Nothing, ...adminRefusals('not_found') },
  };
  server.delete(
    `${path}/:name`,
    { onRequest: requireSource(imports), schema: deleteSchema },
    async ({ params }, reply) => {
      await imports.remove(params.name);
      return reply.status(204).send(null);
    },
  );
}

function versionRoutes(server: Server, imports: OpenapiImports): void {
  const getSchema = {
    ...operation,
    operationId: 'getOpenApiSkillVersion',
    summary:
      'Get a version of a skill with all that is pinned of it, to be read before it is activated',
    params: ImportSkillParams,
    response: { 200: PinnedVersion, ...adminRefusals('not_found') },
  };
  server.get(
    '/admin/openapi-imports/:name/skills/:version/:skillName',
    { onRequest: requireSource(imports), schema: getSchema },
    ({ params: { name, ...version } }) => imports.findVersion(name, version),
  );
  const refreshSchema = {
    ...operation,
    operationId: 'refreshOpenApiImport',
    summary: 'Compare the skills of an OpenAPI import with its document of now',
    description:
      'An operation that differs, or is new, makes a version in quarantine. A document that ' +
      'cannot be read is answered with its fault; its skills stay as they are.',
    params: ImportParams,
    response: { 200: OpenapiImport, ...adminRefusals('not_found') },
  };
  server.post(
    '/admin/openapi-imports/:name/refresh',
    { onRequest: requireSource(imports), schema: refreshSchema },
    ({ params }) => imports.refresh(params.name),
  );
  const activateSchema = {
    ...operation,
    operationId: 'activateOpenApiSkills',
    summary: 'Activate versions in quarantine',
    description: 'One after the other; the first that cannot be activated ends it.',
    params: ImportParams,
    body: Decisions,
    response: { 200: OpenapiImport, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.post(
    '/admin/openapi-imports/:name/activate',
    { onRequest: requireSource(imports), schema: activateSchema },
    ({ params, body }) => imports.activate(params.name, body.versions),
  );
  const rejectSchema = {
    ...operation,
    operationId: 'rejectOpenApiSkills',
    summary: 'Reject versions in quarantine',
    description:
      'They stay inactive until their operation changes again, or they are activated after all.',
    params: ImportParams,
    body: Decisions,
    response: { 200: OpenapiImport, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.post(
    '/admin/openapi-imports/:name/reject',
    { onRequest: requireSource(imports), schema: rejectSchema },
    ({ params, body }) => imports.reject(params.name, body.versions),
  );
}

function previewRoute(server: Server, imports: OpenapiImports): void {
  const previewSchema = {
    ...operation,
    operationId: 'previewOpenApiImport',
    summary: 'List the operations of a document, to choose from them',
    description:
      'Nothing is stored. A document that cannot be read is a conflict, with the reason.',
    body: DocumentPreview,
    response: {
      200: PreviewedOperations,
      ...adminRefusals('not_found', 'conflict', ...bodyRefusals),
    },
  };
  server.post(
    '/admin/openapi-imports/preview',
    { schema: previewSchema, bodyLimit },
    ({ body: { name, ...given } }) => imports.preview(name ?? null, given),
  );
}
