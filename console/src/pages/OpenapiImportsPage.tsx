import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { openapiImportsQuery } from '../api/openapi-imports.ts';
import { OpenapiImportForm } from '../forms/OpenapiImportForm.tsx';
import { summaryColumns } from '../remote/SourcePage.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { FileJson } from '../ui/icons.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { pageSize } from '../ui/Pagination.tsx';

const route = getRouteApi('/shell/openapi-imports');

export function OpenapiImportsPage() {
  return (
    <AdministratorOnly title="OpenAPI imports">
      <OpenapiImports />
    </AdministratorOnly>
  );
}

function OpenapiImports() {
  const { page = 1 } = route.useSearch();
  const query = useQuery(openapiImportsQuery({ limit: pageSize, offset: (page - 1) * pageSize }));
  return (
    <ListPage
      title="OpenAPI imports"
      query={query}
      page={page}
      columns={columns}
      rowKey={({ name }) => name}
      add="Import document"
      form={(close) => <OpenapiImportForm one={null} onClose={close} />}
      icon={<FileJson />}
      none="No imports"
      about="The operations of an HTTP API that has an OpenAPI document become skills. What changes in the document later waits here until you have read it."
    />
  );
}

const columns = summaryColumns<Schema<'OpenApiImportSummary'>>(
  '/openapi-imports/$name',
  ({ base_url }) => base_url,
);
