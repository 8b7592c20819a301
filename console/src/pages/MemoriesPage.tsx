import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { agentsQuery } from '../api/agents.ts';
import { AgentsOfUser } from '../memories/AgentsOfUser.tsx';
import { Memories } from '../memories/Memories.tsx';
import { ButtonLink } from '../ui/Button.tsx';
import { Select } from '../ui/Field.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Page } from '../ui/Page.tsx';

const route = getRouteApi('/shell/memories');
const list = { label: 'Memories', to: '/memories' };

export function MemoriesPage() {
  const { agent_id, ...search } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(agentsQuery());
  if (agent_id === undefined && search.user !== undefined) {
    return (
      <Page title={`Memories of ${search.user}`} parent={list}>
        <AgentsOfUser key={search.user} userId={search.user} />
      </Page>
    );
  }
  // Every organization begins with an agent, so one is preselected.
  const chosen = agent_id ?? query.data?.data.at(-1)?.id;
  return (
    <Page
      title="Memories"
      actions={
        chosen && (
          <>
            <div className="w-48">
              <Select
                aria-label="Agent"
                value={chosen}
                onChange={({ target }) =>
                  void navigate({
                    search: { agent_id: target.value, ...(search.user && { user: search.user }) },
                  })
                }
              >
                {[...new Set([...(query.data?.data.map(({ id }) => id) ?? []), chosen])].map(
                  (id) => (
                    <option key={id} value={id}>
                      {id}
                    </option>
                  ),
                )}
              </Select>
            </div>
            <ButtonLink to="/agents/$agentId" params={{ agentId: chosen }} look="quiet">
              Open agent
            </ButtonLink>
          </>
        )
      }
    >
      <Loaded query={query}>
        {() =>
          chosen && (
            <Memories
              key={chosen}
              agentId={chosen}
              search={search}
              onSearch={(next, replace) =>
                void navigate({ search: { agent_id: chosen, ...next }, replace })
              }
            />
          )
        }
      </Loaded>
    </Page>
  );
}
