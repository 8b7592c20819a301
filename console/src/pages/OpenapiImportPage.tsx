import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import {
  decideOperation,
  deleteOpenapiImport,
  type OpenapiImport,
  openapiImportQuery,
  readOperationVersion,
  refreshOpenapiImport,
} from '../api/openapi-imports.ts';
import { OpenapiImportForm } from '../forms/OpenapiImportForm.tsx';
import { authKinds } from '../forms/openapi-import.ts';
import { type Fact, SourcePage } from '../remote/SourcePage.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';

const route = getRouteApi('/shell/openapi-imports/$name');
const parent = { label: 'OpenAPI imports', to: '/openapi-imports' };
const acts = {
  refresh: refreshOpenapiImport,
  remove: deleteOpenapiImport,
  decide: decideOperation,
  read: readOperationVersion,
  form: (one: OpenapiImport, close: () => void) => <OpenapiImportForm one={one} onClose={close} />,
};

export function OpenapiImportPage() {
  return (
    <AdministratorOnly title="OpenAPI import">
      <OneImport />
    </AdministratorOnly>
  );
}

function OneImport() {
  const { name } = route.useParams();
  return (
    <SourcePage
      name={name}
      parent={parent}
      query={useQuery(openapiImportQuery(name))}
      changes={[['openapi-imports'], ['skills']]}
      acts={acts}
      facts={factsOf}
      what={{ source: 'Document', tool: 'operation' }}
    />
  );
}

const factsOf = (one: OpenapiImport): Fact[] => {
  const { title, version, openapi } = one.document;
  const self = [title, version, openapi && `(OpenAPI ${openapi})`].filter((text) => text !== null);
  return [
    ['Document', one.url ?? 'stored'],
    ['Base address', one.base_url ?? '–'],
    self.length > 0 && ['Calls itself', self.join(' ')],
    ['Authorization', authKinds.find(({ value }) => value === one.auth.type)?.label],
    ['Operations', one.operations === null ? 'all' : one.operations.join(', ')],
  ];
};
