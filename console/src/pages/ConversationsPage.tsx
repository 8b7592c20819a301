import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { conversationsQuery } from '../api/conversations.ts';
import { live } from '../api/queries.ts';
import { openingWords } from '../conversations/content.ts';
import { sourceOptions, sourceText } from '../jobs/words.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { FilterSelect, Filters, FilterText } from '../ui/Filters.tsx';
import { MessagesSquare } from '../ui/icons.tsx';
import { AgentLink } from '../ui/Links.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { AgentFilter } from '../ui/Pickers.tsx';
import { Status } from '../ui/Status.tsx';
import { changed } from '../ui/search.ts';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';

const route = getRouteApi('/shell/conversations');
const statuses = ['active', 'completed', 'failed'].map((value) => ({ value }));

type Asked = Parameters<typeof conversationsQuery>[0];

const columns: readonly Column<Schema<'ListedConversation'>>[] = [
  { header: 'Status', cell: ({ status }) => <Status value={status} /> },
  {
    header: 'Begins with',
    grows: true,
    cell: ({ id, opening }) => (
      <Link
        to="/conversations/$conversationId"
        params={{ conversationId: id }}
        className={rowLink}
        title={id}
      >
        {openingWords(opening) || <span className="font-mono text-xs">{id}</span>}
      </Link>
    ),
  },
  { header: 'Agent', from: 'sm', cell: ({ agent_id }) => <AgentLink id={agent_id} isInRow /> },
  { header: 'User', from: 'md', cell: ({ user_id }) => user_id },
  { header: 'Source', from: 'lg', cell: ({ trigger_type }) => sourceText(trigger_type) },
  {
    header: 'Started',
    from: 'md',
    align: 'right',
    cell: ({ created_at }) => <Time value={created_at} />,
  },
  { header: 'Changed', align: 'right', cell: ({ updated_at }) => <Time value={updated_at} /> },
];

export function ConversationsPage() {
  const { page = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const conversations = useQuery({
    ...conversationsQuery({
      ...(filters as Asked),
      include: 'opening',
      limit: pageSize,
      offset: (page - 1) * pageSize,
    }),
    refetchInterval: live,
  });
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => void navigate({ search: {} });
  const set = (change: { [K in keyof typeof filters]: string | undefined }) =>
    void navigate({ search: (before) => changed(before, change) });
  return (
    <Page
      title="Conversations"
      actions={
        filters.user_id && (
          <ButtonLink to="/users/$userId" params={{ userId: filters.user_id }}>
            Data of this user
          </ButtonLink>
        )
      }
    >
      <Filters label="Filter conversations" clear={isFiltered ? clear : undefined}>
        <FilterSelect
          label="Status"
          value={filters.status}
          onValue={(status) => set({ status })}
          options={statuses}
        />
        <AgentFilter value={filters.agent_id} onValue={(agent_id) => set({ agent_id })} />
        <FilterSelect
          label="Source"
          value={filters.trigger_type}
          onValue={(trigger_type) => set({ trigger_type })}
          options={sourceOptions}
        />
        <FilterText label="User" value={filters.user_id} onValue={(user_id) => set({ user_id })} />
      </Filters>
      <Section flush>
        <Loaded query={conversations} lines={12}>
          {({ data, total }) =>
            total === 0 ? (
              <None isFiltered={isFiltered} clear={clear} />
            ) : (
              <>
                <Table
                  caption="Conversations, newest first"
                  columns={columns}
                  rows={data}
                  rowKey={({ id }) => id}
                />
                <Pagination
                  page={page}
                  total={total}
                  onPage={(next) =>
                    void navigate({ search: (before) => ({ ...before, page: next }) })
                  }
                />
              </>
            )
          }
        </Loaded>
      </Section>
    </Page>
  );
}

function None({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  return isFiltered ? (
    <Empty
      icon={<MessagesSquare />}
      title="No matching conversations"
      action={<Button onClick={clear}>Clear the filters</Button>}
    >
      No stored conversation matches all filters.
    </Empty>
  ) : (
    <Empty
      icon={<MessagesSquare />}
      title="No conversations yet"
      action={
        <ButtonLink
          to="/skills/$category/$version/$name"
          params={{ category: 'agent', version: 'v1.0', name: 'run-task' }}
          search={{ tab: 'run' }}
          look="primary"
        >
          Give an agent a task
        </ButtonLink>
      }
    >
      Every job has a conversation: its input, the messages of models and tools, and its output.
    </Empty>
  );
}
