import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { AgentFacts } from '../agents/AgentFacts.tsx';
import { AgentJobs } from '../agents/AgentJobs.tsx';
import { AgentSettings } from '../agents/AgentSettings.tsx';
import { AgentStatus } from '../agents/AgentStatus.tsx';
import { AgentVersions } from '../agents/AgentVersions.tsx';
import { type AgentForSession, agentQuery, changeAgent, deleteAgent } from '../api/agents.ts';
import { live } from '../api/queries.ts';
import { usageQuery } from '../api/usage.ts';
import { Chat } from '../chat/Chat.tsx';
import { Memories } from '../memories/Memories.tsx';
import { useHasScope, useMissingScopes } from '../shell/session.ts';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Pause, Play, Trash2 } from '../ui/icons.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Permitted } from '../ui/NeedsScope.tsx';
import { Page } from '../ui/Page.tsx';
import { Tabs } from '../ui/Tabs.tsx';
import { useAct } from '../ui/useAct.ts';
import { Usage } from '../usage/Usage.tsx';

const route = getRouteApi('/shell/agents/$agentId');
const list = { label: 'Agents', to: '/agents' };

export function AgentPage() {
  const { agentId } = route.useParams();
  const query = useQuery({ ...agentQuery(agentId), refetchInterval: live });
  const agent = query.data;
  return (
    <Page
      title={agent?.name || agentId}
      parent={list}
      about={agent && <AgentStatus status={agent.status} />}
      actions={agent && <Acts agent={agent} />}
    >
      <Loaded query={query}>{(loaded) => <AgentTabs key={loaded.id} agent={loaded} />}</Loaded>
    </Page>
  );
}

function AgentTabs({ agent }: { agent: AgentForSession }) {
  const { tab = 'chat', conversation, version, ...search } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Tabs
      value={tab}
      onValue={(next) => void navigate({ search: next === 'chat' ? {} : { tab: next } })}
      tabs={[
        {
          value: 'chat',
          label: 'Chat',
          content: <Chat agent={agent} conversationId={conversation} />,
        },
        {
          value: 'settings',
          label: 'Settings',
          content: (
            <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_18rem]">
              <AgentSettings agent={agent} />
              <AgentFacts agent={agent} />
            </div>
          ),
        },
        {
          value: 'use',
          label: 'Use',
          content: <Usage owner={{ kind: 'agent', id: agent.id }} noun="this agent" />,
        },
        {
          value: 'memories',
          label: 'Memories',
          content: (
            <Memories
              agentId={agent.id}
              search={search}
              onSearch={(next, replace) =>
                void navigate({ search: { tab: 'memories', ...next }, replace })
              }
            />
          ),
        },
        {
          value: 'versions',
          label: 'Versions',
          content: (
            <AgentVersions
              agent={agent}
              chosen={/^[1-9]\d*$/.test(version ?? '') ? Number(version) : undefined}
              onChosen={(next) =>
                void navigate({ search: { tab: 'versions', version: `${next}` }, replace: true })
              }
            />
          ),
        },
        { value: 'jobs', label: 'Jobs', content: <AgentJobs agentId={agent.id} /> },
      ]}
    />
  );
}

/** The scopes that the session lacks to delete an agent; null until it is known whether the agent has a budget. */
function useMissingToDelete({ id, approvals, missing_scopes }: AgentForSession) {
  const ofApprovals = useMissingScopes(approvals.length > 0 ? ['approvals'] : []);
  const mayDeleteBudgets = useHasScope('budgets');
  const usage = useQuery({ ...usageQuery({ kind: 'agent', id }), enabled: !mayDeleteBudgets });
  if (mayDeleteBudgets) return [...missing_scopes, ...ofApprovals];
  if (usage.isPending) return null;
  // Where it cannot be read, the platform says why it refuses.
  const limits = Object.values(usage.data?.limits ?? {});
  const hasBudget = limits.some((limit) => limit !== null);
  return [...missing_scopes, ...ofApprovals, ...(hasBudget ? ['budgets'] : [])];
}

/** Pause or resume, and delete. */
function Acts({ agent }: { agent: AgentForSession }) {
  const [asking, setAsking] = useState<'pause' | 'delete' | null>(null);
  const navigate = useNavigate();
  const { id, status } = agent;
  const missing = useMissingToDelete(agent);
  const name = agent.name || id;
  const change = useAct({
    act: (next: 'active' | 'paused') => changeAgent(id, { status: next }),
    done: (changed) => (changed.status === 'paused' ? `${name} is paused` : `${name} takes work`),
    failed: `${name} was not changed`,
    changes: [['agents']],
    quiet: asking !== null,
  });
  const remove = useAct({
    act: () => deleteAgent(id),
    done: `${name} is deleted`,
    changes: [['agents', 'page']],
    quiet: true,
  });
  const close = () => setAsking(null);
  return (
    <>
      {status === 'active' ? (
        <Button icon={<Pause />} onClick={() => setAsking('pause')}>
          Pause
        </Button>
      ) : (
        <Button icon={<Play />} busy={change.isPending} onClick={() => change.mutate('active')}>
          Resume
        </Button>
      )}
      <Permitted missing={missing} act="Deleting it">
        <Button look="danger" icon={<Trash2 />} onClick={() => setAsking('delete')}>
          Delete
        </Button>
      </Permitted>
      <Confirm
        open={asking === 'pause'}
        onClose={close}
        title={`Pause ${name}?`}
        verb="Pause"
        keep="Let it work"
        act={() => change.mutateAsync('paused')}
      >
        It takes no new work: executions are refused with <code>agent_paused</code>, schedules skip
        their slots. Accepted jobs finish.
      </Confirm>
      <Confirm
        open={asking === 'delete'}
        onClose={close}
        title={`Delete ${name}?`}
        verb="Delete"
        act={async () => {
          await remove.mutateAsync();
          await navigate({ to: '/agents', ignoreBlocker: true });
        }}
      >
        This also deletes its memories, webhooks and budget. Its jobs and conversations stay. An
        agent with a schedule or a trigger cannot be deleted.
      </Confirm>
    </>
  );
}
