import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { agentsOfUserQuery } from '../api/memories.ts';
import { useReachesUsers } from '../shell/session.ts';
import { Loaded } from '../ui/Loading.tsx';
import { NeedsScope } from '../ui/NeedsScope.tsx';
import { Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
import { countText } from '../ui/Time.tsx';

/** The agents that have memories of a user; each leads to these memories. */
export function AgentsOfUser({ userId }: { userId: string }) {
  const [page, setPage] = useState(1);
  const mayRead = useReachesUsers();
  const query = useQuery({
    ...agentsOfUserQuery(userId, { limit: pageSize, offset: (page - 1) * pageSize }),
    enabled: mayRead,
    placeholderData: keepPreviousData,
  });
  if (!mayRead) {
    return (
      <Section title="Memories of this user, by agent">
        <NeedsScope scopes={['memories']} act="Reading them" />
      </Section>
    );
  }
  return (
    <Section title="Memories of this user, by agent" flush>
      <Loaded query={query} lines={2}>
        {({ data, total }) => (
          <>
            <Table
              caption="Agents with memories of this user"
              rows={data}
              rowKey={({ agent_id }) => agent_id}
              columns={[
                {
                  header: 'Agent',
                  grows: true,
                  cell: ({ agent_id }) => (
                    <Link to="/memories" search={{ agent_id, user: userId }} className={rowLink}>
                      {agent_id}
                    </Link>
                  ),
                },
                {
                  header: 'Memories',
                  align: 'right',
                  cell: ({ memories }) => countText(memories),
                },
                {
                  header: 'Profile',
                  cell: ({ has_profile }) => (has_profile ? 'yes' : 'none'),
                },
              ]}
              empty={
                <p className="px-4 py-4 text-[13px] text-muted">No agent has any of this user.</p>
              }
            />
            {total > pageSize && <Pagination page={page} total={total} onPage={setPage} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}
