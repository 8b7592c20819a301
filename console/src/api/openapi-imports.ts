/** OpenAPI documents whose operations are skills; for the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { api, body, get, type PageRange, post, put, remove, type Schema } from './client.ts';
import { live } from './queries.ts';

export type OpenapiImport = Schema<'OpenApiImport'>;
/** Fields with a default are optional. */
export type OpenapiImportChange = Omit<Partial<Schema<'OpenApiImportChange'>>, 'auth'> & {
  auth?: Pick<Auth, 'type'> & Partial<Auth>;
};
type Auth = NonNullable<Schema<'OpenApiImportChange'>['auth']>;

export const openapiImportsQuery = (page: PageRange) =>
  queryOptions({
    queryKey: ['openapi-imports', page],
    queryFn: () => get('/admin/openapi-imports', { query: page }),
    refetchInterval: live,
  });

export const openapiImportQuery = (name: string) =>
  queryOptions({
    queryKey: ['openapi-imports', name],
    queryFn: () => get('/admin/openapi-imports/{name}', { path: { name } }),
    refetchInterval: live,
  });

/** A version with its pinned definition. */
export const readOperationVersion = (
  name: string,
  { version, skill_name: skillName }: Schema<'RemoteSkillVersion'>,
) =>
  get('/admin/openapi-imports/{name}/skills/{version}/{skillName}', {
    path: { name, version, skillName },
  });

export const addOpenapiImport = (name: string, one: OpenapiImportChange) =>
  post('/admin/openapi-imports', { body: { name, ...one } as Schema<'NewOpenApiImport'> });

export const changeOpenapiImport = (name: string, change: OpenapiImportChange) =>
  put('/admin/openapi-imports/{name}', {
    path: { name },
    body: change as Schema<'OpenApiImportChange'>,
  });

export const refreshOpenapiImport = (name: string) =>
  post('/admin/openapi-imports/{name}/refresh', { path: { name } });

export const deleteOpenapiImport = (name: string) =>
  remove('/admin/openapi-imports/{name}', { path: { name } });

/** The operations of a document, to choose from. */
export const previewOpenapiImport = (request: { name?: string } & OpenapiImportChange) =>
  post('/admin/openapi-imports/preview', { body: request as Schema<'OpenApiPreviewRequest'> });

/** Accepts or rejects a version by the digest that was read. */
export function decideOperation(
  decision: 'activate' | 'reject',
  name: string,
  { version, skill_name, digest }: Schema<'RemoteSkillVersion'>,
) {
  const read = {
    params: { path: { name } },
    body: { versions: [{ skill_name, version, digest }] },
  };
  return body(
    decision === 'activate'
      ? api.POST('/admin/openapi-imports/{name}/activate', read)
      : api.POST('/admin/openapi-imports/{name}/reject', read),
  );
}
