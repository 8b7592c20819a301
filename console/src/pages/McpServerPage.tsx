import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { RefreshCw, Trash2 } from 'lucide-react';
import { useState } from 'react';
import {
  activateMcpSkill,
  deleteMcpServer,
  type McpServer,
  mcpServerQuery,
  refreshMcpServer,
} from '../api/mcp-servers.ts';
import { AdministratorOnly } from '../shell/AdministratorOnly.tsx';
import { Button } from '../ui/Button.tsx';
import { Code } from '../ui/Code.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { type Column, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

type Version = McpServer['skills'][number];

const route = getRouteApi('/shell/mcp-servers/$name');
const list = { label: 'Outside servers', to: '/mcp-servers' };
const changes = [['mcp-servers'], ['skills']];

export function McpServerPage() {
  return (
    <AdministratorOnly title="Outside server">
      <OneServer />
    </AdministratorOnly>
  );
}

function OneServer() {
  const { name } = route.useParams();
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const query = useQuery(mcpServerQuery(name));
  const refresh = useAct({
    act: () => refreshMcpServer(name),
    done: ({ status }) => (status === 'failing' ? undefined : `${name} is refreshed`),
    failed: `${name} was not refreshed`,
    changes,
  });
  const remove = useAct({
    act: () => deleteMcpServer(name),
    done: `${name} is removed`,
    changes,
    quiet: true,
  });
  return (
    <Page
      title={name}
      parent={list}
      about={query.data && <Status value={query.data.status} />}
      actions={
        <>
          <Button icon={<RefreshCw />} busy={refresh.isPending} onClick={() => refresh.mutate()}>
            Refresh
          </Button>
          <Button look="danger" icon={<Trash2 />} onClick={() => setDeleting(true)}>
            Remove
          </Button>
        </>
      }
    >
      <Loaded query={query}>{(server) => <ServerParts server={server} />}</Loaded>
      <Confirm
        open={isDeleting}
        onClose={() => setDeleting(false)}
        title={`Remove ${name}?`}
        verb="Remove"
        act={async () => {
          await remove.mutateAsync();
          await navigate({ to: '/mcp-servers' });
        }}
      >
        Its skills become inactive, and their jobs that have not ended fail.
      </Confirm>
    </Page>
  );
}

function ServerParts({ server }: { server: McpServer }) {
  const waiting = server.skills.filter(({ state }) => state === 'quarantined');
  return (
    <>
      <Section title="Server">
        <Facts
          facts={[
            server.fault !== null && ['Last fault', server.fault],
            ['Address', server.url ?? [server.command, ...server.args].join(' ')],
            ['Category and scope', server.category],
            ['Calls itself', [server.server.name, server.server.version].join(' ')],
            server.refreshed_at !== null && [
              'Refreshed',
              <Time key="t" value={server.refreshed_at} />,
            ],
          ]}
        />
      </Section>
      {waiting.map((version) => (
        <Waiting key={version.skill} server={server.name} version={version} />
      ))}
      <Section title="Skills" flush>
        <Table
          caption="Skills"
          columns={columns}
          rows={server.skills}
          rowKey={({ skill }) => skill}
          empty={<p className="p-4 text-muted">The server has offered no tool yet.</p>}
        />
      </Section>
      {server.left_out.length > 0 && (
        <Section title="Tools that could not become skills">
          <ul className="list-disc pl-5">
            {server.left_out.map(({ tool, reason }) => (
              <li key={tool}>{reason}</li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

/** A version in quarantine: what has changed, to be read before it is activated. */
function Waiting({ server, version }: { server: string; version: Version }) {
  const activate = useAct({
    act: () => activateMcpSkill(server, version),
    done: `${version.skill} is active`,
    failed: `${version.skill} was not activated`,
    changes,
  });
  return (
    <Section
      title={`${version.skill} waits in quarantine`}
      actions={
        <Button
          size="small"
          look="primary"
          busy={activate.isPending}
          onClick={() => activate.mutate()}
        >
          Activate
        </Button>
      }
    >
      <Code
        label={`What differs in ${version.skill}`}
        text={version.difference ?? `The tool ${version.tool} is new.\n\n${version.description}`}
        tall
      />
    </Section>
  );
}

const columns: readonly Column<Version>[] = [
  { header: 'Skill', cell: ({ skill }) => <span className="font-mono text-xs">{skill}</span> },
  {
    header: 'State',
    cell: ({ state }) => <Status value={state} tone={toneOf[state]} />,
  },
  {
    header: 'What the server says',
    from: 'md',
    grows: true,
    cell: ({ description, reason }) =>
      reason ?? <span className="line-clamp-2">{description}</span>,
  },
];

const toneOf = { active: 'good', quarantined: 'warn', withdrawn: 'bad' } as const;
