/** The routes of administrators that all kinds of remote sources have. The kinds differ in path, words and schemas. */
import type { TSchema } from 'typebox';
import { adminRefusals, bodyRefusals } from '../../adapters/http/refusals.ts';
import { Nothing, Page, Paged } from '../../adapters/http/schemas.ts';
import type { Server } from '../../adapters/http/server.ts';
import { requireSource } from './require-source.ts';
import type { Sources } from './source-verbs.ts';
import { PinnedVersion, type SourceParams, type SourceSkillParams } from './versions.schemas.ts';

interface OperationWords {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
}

/** The interface of one kind of sources. */
export interface SourceApi {
  readonly path: string;
  readonly tag: string;
  /** The description of a page of the list. */
  readonly page: string;
  readonly words: Readonly<
    Record<
      'list' | 'find' | 'add' | 'replace' | 'remove' | 'findVersion' | 'refresh',
      OperationWords
    >
  >;
  readonly schemas: {
    readonly params: ReturnType<typeof SourceParams>;
    readonly skillParams: ReturnType<typeof SourceSkillParams>;
    readonly added: TSchema;
    readonly change: TSchema;
    readonly source: TSchema;
    readonly summary: TSchema;
  };
  /** Of requests with the fields of a source. */
  readonly limits?: { readonly bodyLimit: number };
}

/** What the operations of a kind have in common. */
export const sourceOperation = (tag: string) => ({
  tags: [tag],
  security: [{ adminBearer: [] }, { adminHeader: [] }],
});

/** Registers the routes that list, find, change and refresh the sources of a kind, and find a version of a skill. */
export function sourceRoutes<Fields extends object>(
  server: Server,
  sources: Sources<object, Fields>,
  api: SourceApi,
): void {
  listRoutes(server, sources, api);
  changeRoutes(server, sources, api);
  versionRoutes(server, sources, api);
}

function listRoutes(
  server: Server,
  sources: Sources<object>,
  { path, tag, page: pageOf, words, schemas }: SourceApi,
): void {
  const listSchema = {
    ...sourceOperation(tag),
    ...words.list,
    querystring: Page,
    response: { 200: Paged(schemas.summary, pageOf), ...adminRefusals() },
  };
  server.get(path, { schema: listSchema }, async ({ query: page }) => ({
    ...(await sources.list(page)),
    ...page,
  }));
  const findSchema = {
    ...sourceOperation(tag),
    ...words.find,
    params: schemas.params,
    response: { 200: schemas.source, ...adminRefusals('not_found') },
  };
  server.get(
    `${path}/:name`,
    { onRequest: requireSource(sources), schema: findSchema },
    ({ params }) => sources.find(params.name),
  );
}

function changeRoutes<Fields extends object>(
  server: Server,
  sources: Sources<object, Fields>,
  { path, tag, words, schemas, limits }: SourceApi,
): void {
  const onRequest = requireSource(sources);
  const addSchema = {
    ...sourceOperation(tag),
    ...words.add,
    body: schemas.added,
    response: { 201: schemas.source, ...adminRefusals('conflict', ...bodyRefusals) },
  };
  server.post(path, { schema: addSchema, ...limits }, async ({ body }, reply) => {
    const { name, ...given } = body as Fields & { readonly name: string };
    return reply.status(201).send(await sources.add(name, given as unknown as Fields));
  });
  const replaceSchema = {
    ...sourceOperation(tag),
    ...words.replace,
    description: 'Replaces all that was set: omitted fields have their defaults again.',
    params: schemas.params,
    body: schemas.change,
    response: { 200: schemas.source, ...adminRefusals('not_found', 'conflict', ...bodyRefusals) },
  };
  server.put(`${path}/:name`, { onRequest, schema: replaceSchema, ...limits }, ({ params, body }) =>
    sources.replace(params.name, body as Fields),
  );
  const removeSchema = {
    ...sourceOperation(tag),
    ...words.remove,
    params: schemas.params,
    response: { 204: Nothing, ...adminRefusals('not_found') },
  };
  server.delete(`${path}/:name`, { onRequest, schema: removeSchema }, async ({ params }, reply) => {
    await sources.remove(params.name);
    return reply.status(204).send(null);
  });
}

function versionRoutes(
  server: Server,
  sources: Sources<object>,
  { path, tag, words, schemas }: SourceApi,
): void {
  const onRequest = requireSource(sources);
  const findSchema = {
    ...sourceOperation(tag),
    ...words.findVersion,
    params: schemas.skillParams,
    response: { 200: PinnedVersion, ...adminRefusals('not_found') },
  };
  server.get(
    `${path}/:name/skills/:version/:skillName`,
    { onRequest, schema: findSchema },
    ({ params: { name, ...version } }) => sources.findVersion(name, version),
  );
  const refreshSchema = {
    ...sourceOperation(tag),
    ...words.refresh,
    params: schemas.params,
    response: { 200: schemas.source, ...adminRefusals('not_found') },
  };
  server.post(`${path}/:name/refresh`, { onRequest, schema: refreshSchema }, ({ params }) =>
    sources.refresh(params.name),
  );
}
