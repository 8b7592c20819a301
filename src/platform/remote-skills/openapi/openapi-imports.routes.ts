/** `/admin/openapi-imports`: OpenAPI documents whose operations are skills (docs/openapi-imports.md). */
import { adminRefusals, bodyRefusals } from '../../../adapters/http/refusals.ts';
import type { Server } from '../../../adapters/http/server.ts';
import { requireSource } from '../require-source.ts';
import { type SourceApi, sourceOperation, sourceRoutes } from '../source-routes.ts';
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

const operation = sourceOperation('OpenAPI imports');
/** A document, and what JSON adds to it where it is a text. */
const bodyLimit = 2 * documentBytesMax;

const api: SourceApi = {
  path: '/admin/openapi-imports',
  tag: 'OpenAPI imports',
  page: 'A page of imports.',
  words: {
    list: {
      operationId: 'listOpenApiImports',
      summary: 'List the OpenAPI documents whose operations are skills, by name',
    },
    find: {
      operationId: 'getOpenApiImport',
      summary: 'Get an OpenAPI import with its skills and what has changed of them',
    },
    add: {
      operationId: 'addOpenApiImport',
      summary: 'Import an OpenAPI document, whose operations become skills',
      description:
        'Its operations are active at once. A document that cannot be read is added too, with its ' +
        'fault. The body may have 8 MiB, the document 4 MiB.',
    },
    replace: {
      operationId: 'replaceOpenApiImport',
      summary: 'Change an OpenAPI import, and refresh it',
    },
    remove: {
      operationId: 'deleteOpenApiImport',
      summary: 'Remove an OpenAPI import; its skills become inactive',
    },
    findVersion: {
      operationId: 'getOpenApiSkillVersion',
      summary:
        'Get a version of a skill with all that is pinned of it, to be read before it is activated',
    },
    refresh: {
      operationId: 'refreshOpenApiImport',
      summary: 'Compare the skills of an OpenAPI import with its document of now',
      description:
        'An operation that differs, or is new, makes a version in quarantine. A document that ' +
        'cannot be read is answered with its fault; its skills stay as they are.',
    },
  },
  schemas: {
    params: ImportParams,
    skillParams: ImportSkillParams,
    added: NewOpenapiImport,
    change: OpenapiImportChange,
    source: OpenapiImport,
    summary: OpenapiImportSummary,
  },
  limits: { bodyLimit },
};

export function openapiImportRoutes(server: Server, openapiImports: OpenapiImports): void {
  sourceRoutes(server, openapiImports, api);
  decisionRoutes(server, openapiImports);
  previewRoute(server, openapiImports);
}

function decisionRoutes(server: Server, imports: OpenapiImports): void {
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
