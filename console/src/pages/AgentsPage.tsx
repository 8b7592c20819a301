import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { AgentStatus } from '../agents/AgentStatus.tsx';
import { agentsPageQuery } from '../api/agents.ts';
import type { Schema } from '../api/client.ts';
import { live } from '../api/queries.ts';
import { NewAgent } from '../forms/NewAgent.tsx';
import { Bot } from '../ui/icons.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { pageSize } from '../ui/Pagination.tsx';
import { type Column, rowLink } from '../ui/Table.tsx';
import { Tags } from '../ui/Tags.tsx';
import { Time } from '../ui/Time.tsx';

const route = getRouteApi('/shell/agents');

const columns: readonly Column<Schema<'Agent'>>[] = [
  {
    header: 'Agent',
    grows: true,
    cell: ({ id, name }) => (
      <>
        <Link to="/agents/$agentId" params={{ agentId: id }} className={rowLink}>
          {name || id}
        </Link>
        {name !== '' && name !== id && (
          <span className="ml-2 font-mono text-xs text-muted">{id}</span>
        )}
      </>
    ),
  },
  { header: 'Status', cell: ({ status }) => <AgentStatus status={status} /> },
  {
    header: 'Model',
    from: 'md',
    cell: ({ model }) =>
      model === null ? (
        <span className="text-muted">the default</span>
      ) : (
        <span className="font-mono text-xs">{model}</span>
      ),
  },
  {
    header: 'Skills',
    from: 'lg',
    cell: ({ skills }) =>
      skills.length === 0 ? (
        <span className="text-muted">none</span>
      ) : (
        <Tags values={skills} most={2} />
      ),
  },
  {
    header: 'Updated',
    align: 'right',
    from: 'sm',
    cell: ({ updated_at }) => <Time value={updated_at} />,
  },
];

export function AgentsPage() {
  const { page = 1 } = route.useSearch();
  const query = useQuery({ ...agentsPageQuery(page, pageSize), refetchInterval: live });
  return (
    <ListPage
      title="Agents"
      query={query}
      page={page}
      columns={columns}
      rowKey={({ id }) => id}
      add="New agent"
      form={(close) => <NewAgent onClose={close} />}
      icon={<Bot />}
      none="No agents"
      about="Every job runs as an agent. With instructions and a model an agent carries out tasks and remembers."
    />
  );
}
