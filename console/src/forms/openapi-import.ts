/** An OpenAPI import as its form has it, and as the API takes it. */
import type { Schema } from '../api/client.ts';
import type { OpenapiImport, OpenapiImportChange } from '../api/openapi-imports.ts';
import { type CallSettings, callSettings, timeoutOf } from './CallFields.tsx';

export const authKinds = [
  { value: 'none', label: 'None' },
  { value: 'header', label: 'A header' },
  { value: 'query', label: 'A parameter of the query' },
  { value: 'basic', label: 'User and password' },
  { value: 'oauth_client_credentials', label: 'OAuth client credentials' },
] as const;
export type AuthKind = (typeof authKinds)[number]['value'];

export interface OpenapiImportDraft {
  readonly name: string;
  /** `*` alone for all. */
  readonly organizations: readonly string[];
  /** Where the document comes from; `stored` keeps it. */
  readonly by: 'url' | 'file' | 'text' | 'stored';
  readonly url: string;
  readonly document: string;
  readonly fileName: string;
  readonly baseUrl: string;
  readonly isAll: boolean;
  readonly operations: readonly string[];
  readonly auth: AuthKind;
  /** The kind for which a secret is stored. */
  readonly storedAuth: AuthKind;
  /** The header or parameter, the user, or the client. */
  readonly who: string;
  readonly secret: string;
  readonly tokenUrl: string;
  readonly scope: string;
  readonly audience: string;
  readonly credentialsIn: 'header' | 'body';
  readonly calls: CallSettings;
}

/** `organization` is that of the page, to which a new import belongs. */
export function draftOf(one: OpenapiImport | null, organization: string): OpenapiImportDraft {
  const auth = one?.auth ?? { type: 'none' as const };
  const oauth = auth.type === 'oauth_client_credentials' ? auth : null;
  return {
    name: one?.name ?? '',
    organizations: one?.organizations ?? [organization],
    by: one !== null && one.url === null ? 'stored' : 'url',
    ...{ url: one?.url ?? '', document: '', fileName: '', baseUrl: '' },
    ...(one?.is_base_url_set && { baseUrl: one.base_url ?? '' }),
    isAll: one?.operations == null,
    operations: one?.operations ?? [],
    ...{ auth: auth.type, storedAuth: auth.type, secret: '' },
    who: whoOf(auth),
    tokenUrl: oauth?.token_url ?? '',
    scope: oauth?.scope ?? '',
    audience: oauth?.audience ?? '',
    credentialsIn: oauth?.credentials_in ?? 'header',
    calls: callSettings(one, one?.retried_operations ?? []),
  };
}

function whoOf(auth: OpenapiImport['auth']): string {
  if (auth.type === 'header' || auth.type === 'query') return auth.name;
  if (auth.type === 'basic') return auth.username;
  return auth.type === 'oauth_client_credentials' ? auth.client_id : '';
}

/** What a document is read with. */
export function sourceOf(draft: OpenapiImportDraft) {
  const { by, url, document, baseUrl } = draft;
  const from = by === 'url' ? { url } : { document: by === 'stored' ? null : document };
  return { ...from, ...(baseUrl !== '' && { base_url: baseUrl }), auth: authOf(draft) };
}

/** What is sent, without the name. */
export function changeOf(draft: OpenapiImportDraft): OpenapiImportChange {
  const { organizations, isAll, operations, calls } = draft;
  return {
    ...sourceOf(draft),
    organizations: [...organizations],
    ...(!isAll && { operations: [...operations] }),
    ...timeoutOf(calls),
    retried_operations: [...calls.retried],
  };
}

function authOf(draft: OpenapiImportDraft): NonNullable<OpenapiImportChange['auth']> {
  const { auth: type, who, tokenUrl, scope, audience, credentialsIn } = draft;
  const secret = draft.secret === '' && draft.storedAuth === type ? null : draft.secret;
  switch (type) {
    case 'none':
      return { type };
    case 'header':
    case 'query':
      return { type, name: who, value: secret };
    case 'basic':
      return { type, username: who, password: secret };
    case 'oauth_client_credentials':
      return {
        ...{ type, token_url: tokenUrl, client_id: who, client_secret: secret },
        ...(scope !== '' && { scope }),
        ...(audience !== '' && { audience }),
        credentials_in: credentialsIn,
      };
  }
}

/** Operations to choose from. */
export const choicesOf = ({ operations }: Schema<'OpenApiPreview'>) =>
  operations.map(({ operation, operation_id, summary }) => ({
    value: operation,
    about: [operation_id, summary].filter((text) => text !== null).join(' · '),
  }));
