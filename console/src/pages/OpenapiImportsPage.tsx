import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { FileJson } from 'lucide-react';
import type { Schema } from '../api/client.ts';
import { openapiImportsQuery } from '../api/openapi-imports.ts';
import { OpenapiImportForm } from '../forms/OpenapiImportForm.tsx';
import { SourceStatus, summaryColumns } from '../remote/SourcePage.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { pageSize } from '../ui/Pagination.tsx';
import { type Column, rowLink } from '../ui/Table.tsx';

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

const columns: readonly Column<Schema<'OpenApiImportSummary'>>[] = [
  {
    header: 'Name',
    cell: ({ name }) => (
      <Link to="/openapi-imports/$name" params={{ name }} className={rowLink}>
        {name}
      </Link>
    ),
  },
  { header: 'State', cell: ({ status }) => <SourceStatus value={status} /> },
  {
    header: 'Address',
    from: 'md',
    grows: true,
    cell: ({ base_url }) => <span className="font-mono text-xs">{base_url ?? '–'}</span>,
  },
  ...summaryColumns,
];
