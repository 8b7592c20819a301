import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Cable, Plus } from 'lucide-react';
import type { Schema } from '../api/client.ts';
import { mcpServersQuery } from '../api/mcp-servers.ts';
import { NewMcpServer } from '../forms/NewMcpServer.tsx';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { Button } from '../ui/Button.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { Status } from '../ui/Status.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { useCreating } from '../ui/useCreating.ts';

type McpServer = Schema<'McpServerSummary'>;

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
  const navigate = route.useNavigate();
  const [isAdding, setAdding] = useCreating();
  const query = useQuery(mcpServersQuery({ limit: pageSize, offset: (page - 1) * pageSize }));
  const add = (
    <Button look="primary" icon={<Plus />} onClick={() => setAdding(true)}>
      Add server
    </Button>
  );
  return (
    <Page title="Outside servers" actions={add}>
      <Section flush>
        <Loaded query={query}>
          {({ data, total }) => (
            <>
              <Table
                caption="Outside servers"
                columns={columns}
                rows={data}
                rowKey={({ name }) => name}
                empty={
                  <Empty icon={<Cable />} title="No outside servers" action={add}>
                    The tools of a server of the Model Context Protocol become skills. What changes
                    there later waits here until you have read it.
                  </Empty>
                }
              />
              {total > 0 && (
                <Pagination
                  page={page}
                  total={total}
                  onPage={(next) => void navigate({ search: { page: next } })}
                />
              )}
            </>
          )}
        </Loaded>
      </Section>
      {isAdding && <NewMcpServer onClose={() => setAdding(false)} />}
    </Page>
  );
}

const columns: readonly Column<McpServer>[] = [
  {
    header: 'Name',
    cell: ({ name }) => (
      <Link to="/mcp-servers/$name" params={{ name }} className={rowLink}>
        {name}
      </Link>
    ),
  },
  { header: 'State', cell: ({ status }) => <Status value={status} /> },
  {
    header: 'Address',
    from: 'md',
    grows: true,
    cell: ({ url, command }) => <span className="font-mono text-xs">{url ?? command}</span>,
  },
  {
    header: 'Active skills',
    align: 'right',
    from: 'sm',
    cell: ({ skills }) => countText(skills.active),
  },
  {
    header: 'In quarantine',
    align: 'right',
    cell: ({ skills }) => countText(skills.quarantined),
  },
  {
    header: 'Refreshed',
    align: 'right',
    from: 'md',
    cell: ({ refreshed_at }) =>
      refreshed_at === null ? (
        <span className="text-muted">never</span>
      ) : (
        <Time value={refreshed_at} />
      ),
  },
];
