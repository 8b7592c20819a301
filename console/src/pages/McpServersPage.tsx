import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { mcpServersQuery } from '../api/mcp-servers.ts';
import { McpServerForm } from '../forms/McpServerForm.tsx';
import { summaryColumns } from '../remote/SourcePage.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { Cable } from '../ui/icons.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { pageSize } from '../ui/Pagination.tsx';

const route = getRouteApi('/shell/mcp-servers');

export function McpServersPage() {
  return (
    <AdministratorOnly title="Outside servers">
      <McpServers />
    </AdministratorOnly>
  );
}

function McpServers() {
  const { page = 1 } = route.useSearch();
  const query = useQuery(mcpServersQuery({ limit: pageSize, offset: (page - 1) * pageSize }));
  return (
    <ListPage
      title="Outside servers"
      query={query}
      page={page}
      columns={columns}
      rowKey={({ name }) => name}
      add="Add server"
      form={(close) => <McpServerForm server={null} onClose={close} />}
      icon={<Cable />}
      none="No outside servers"
      about="The tools of a server of the Model Context Protocol become skills. What changes there later waits here until you have read it."
    />
  );
}

const columns = summaryColumns<Schema<'McpServerSummary'>>(
  '/mcp-servers/$name',
  ({ url, command }) => url ?? command,
);
