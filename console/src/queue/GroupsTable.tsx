import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { addressOf, pageOrganization } from '../api/organization.ts';
import type { QueueGroup, QueueState } from '../api/queue.ts';
import { Section } from '../ui/Page.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { countText, Time } from '../ui/Time.tsx';

type Groups = QueueState['organizations'];
export type GroupKind = 'organization' | 'skill' | 'agent';

const headers: Record<GroupKind, string> = {
  organization: 'Organization',
  skill: 'Skill',
  agent: 'Agent',
};

/** What waits and runs by organization, skill or agent, with the reasons. */
export function GroupsTable({
  kind,
  title,
  groups,
  isOfAll,
}: {
  kind: GroupKind;
  title: string;
  groups: Groups;
  isOfAll: boolean;
}) {
  const isCut = groups.total > groups.data.length;
  return (
    <Section title={title} flush>
      <Table
        caption={title}
        rows={groups.data}
        rowKey={({ organization_id, name }) => `${organization_id} ${name}`}
        columns={[
          {
            header: headers[kind],
            grows: true,
            cell: (group) => (
              <>
                <Name kind={kind} group={group} isOfAll={isOfAll} />
                <Reasons group={group} />
              </>
            ),
          },
          ...counts,
        ]}
        empty={<p className="p-4 text-[13px] text-muted">Nothing waits or runs.</p>}
      />
      {isCut && (
        <p className="border-t px-4 py-2 text-xs text-muted">
          The {countText(groups.data.length)} with the most waiting jobs, of{' '}
          {countText(groups.total)}.
        </p>
      )}
    </Section>
  );
}

const counts: readonly Column<QueueGroup>[] = [
  { header: 'Waiting', align: 'right', cell: ({ waiting }) => countText(waiting) },
  { header: 'Running', align: 'right', cell: ({ running }) => countText(running) },
  { header: 'Later', align: 'right', from: 'sm', cell: ({ later }) => countText(later) },
  {
    header: 'Suspended',
    align: 'right',
    from: 'lg',
    cell: ({ suspended }) => countText(suspended),
  },
  {
    header: 'Oldest due',
    align: 'right',
    from: 'sm',
    cell: ({ oldest }) => <Time value={oldest?.since ?? null} />,
  },
];

function Reasons({ group: { held_by } }: { group: QueueGroup }) {
  if (held_by.length === 0) return null;
  return (
    <span className="block text-xs whitespace-normal text-warn-text">
      {held_by.map(({ message }) => message).join(' ')}
    </span>
  );
}

/** Leads to the jobs that wait or, of another organization, to its page of queues. */
function Name({ kind, group, isOfAll }: { kind: GroupKind; group: QueueGroup; isOfAll: boolean }) {
  const { name, organization_id } = group;
  const isOwn = organization_id === null ? !isOfAll : organization_id === pageOrganization();
  const text: ReactNode =
    kind === 'agent' && isOfAll ? (
      <>
        {name}{' '}
        <span className="block truncate text-xs font-normal text-muted">{organization_id}</span>
      </>
    ) : (
      name
    );
  if (!isOwn) {
    if (kind !== 'organization') return <span className="font-medium">{text}</span>;
    return (
      <a href={addressOf(name, '/queue?of=own')} className={rowLink}>
        {text}
      </a>
    );
  }
  const narrowed = { organization: {}, skill: { skill: name }, agent: { agent_id: name } }[kind];
  return (
    <Link to="/jobs" search={{ status: 'queued', ...narrowed }} className={rowLink}>
      {text}
    </Link>
  );
}
