import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Bot, Plus } from 'lucide-react';
import { AgentStatus } from '../agents/AgentStatus.tsx';
import { agentsPageQuery } from '../api/agents.ts';
import type { Schema } from '../api/client.ts';
import { liveMs } from '../api/queries.ts';
import { NewAgent } from '../forms/NewAgent.tsx';
import { Button } from '../ui/Button.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { Tags } from '../ui/Tags.tsx';
import { Time } from '../ui/Time.tsx';
import { useCreating } from '../ui/useCreating.ts';

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
  const navigate = route.useNavigate();
  const [isCreating, setCreating] = useCreating();
  const query = useQuery({ ...agentsPageQuery(page, pageSize), refetchInterval: liveMs });
  const create = (
    <Button look="primary" icon={<Plus />} onClick={() => setCreating(true)}>
      New agent
    </Button>
  );
  return (
    <Page title="Agents" actions={create}>
      <Section flush>
        <Loaded query={query}>
          {({ data, total }) => (
            <>
              <Table
                caption="Agents"
                columns={columns}
                rows={data}
                rowKey={({ id }) => id}
                empty={
                  <Empty icon={<Bot />} title="No agents" action={create}>
                    Every job runs as an agent. With instructions and a model an agent carries out
                    tasks and remembers.
                  </Empty>
                }
              />
              {total > pageSize && (
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
      {isCreating && <NewAgent onClose={() => setCreating(false)} />}
    </Page>
  );
}
