/** OpenAPI documents whose operations are skills; for the administrator alone. */
import { queryOptions } from '@tanstack/react-query';
import { api, body, type PageAsked, type Schema } from './client.ts';
import { live } from './queries.ts';

export type OpenapiImport = Schema<'OpenApiImport'>;
/** Fields with a default are optional. */
export type OpenapiImportChange = Omit<Partial<Schema<'OpenApiImportChange'>>, 'auth'> & {
  auth?: Pick<Auth, 'type'> & Partial<Auth>;
};
type Auth = NonNullable<Schema<'OpenApiImportChange'>['auth']>;

export const openapiImportsQuery = (page: PageAsked) =>
  queryOptions({
    queryKey: ['openapi-imports', page],
    queryFn: () => body(api.GET('/admin/openapi-imports', { params: { query: page } })),
    refetchInterval: live,
  });

export const openapiImportQuery = (name: string) =>
  queryOptions({
    queryKey: ['openapi-imports', name],
    queryFn: () => body(api.GET('/admin/openapi-imports/{name}', { params: { path: { name } } })),
    refetchInterval: live,
  });

/** A version with its pinned definition. */
export const readOperationVersion = (
  name: string,
  { version, skill_name: skillName }: Schema<'RemoteSkillVersion'>,
) =>
  body(
    api.GET('/admin/openapi-imports/{name}/skills/{version}/{skillName}', {
      params: { path: { name, version, skillName } },
    }),
  );

export const addOpenapiImport = (name: string, one: OpenapiImportChange) =>
  body(
    api.POST('/admin/openapi-imports', { body: { name, ...one } as Schema<'NewOpenApiImport'> }),
  );

export const changeOpenapiImport = (name: string, change: OpenapiImportChange) =>
  body(
    api.PUT('/admin/openapi-imports/{name}', {
      params: { path: { name } },
      body: change as Schema<'OpenApiImportChange'>,
    }),
  );

export const refreshOpenapiImport = (name: string) =>
  body(api.POST('/admin/openapi-imports/{name}/refresh', { params: { path: { name } } }));

export const deleteOpenapiImport = (name: string) =>
  body(api.DELETE('/admin/openapi-imports/{name}', { params: { path: { name } } }));

/** The operations of a document, to choose from. */
export const previewOpenapiImport = (asked: { name?: string } & OpenapiImportChange) =>
  body(
    api.POST('/admin/openapi-imports/preview', {
      body: asked as Schema<'OpenApiPreviewRequest'>,
    }),
  );

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
