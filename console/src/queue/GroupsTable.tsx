import type { ReactNode } from 'react';
import { addressOf, pageOrganization } from '../api/organization.ts';
import type { QueueGroup, QueueState } from '../api/queue.ts';
import { limitTexts } from '../skills/limits.ts';
import { classes } from '../ui/classes.ts';
import { Gauge, Scale } from '../ui/icons.tsx';
import { textLink } from '../ui/Links.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Section } from '../ui/Page.tsx';
import { aboveRowLink, type Column, rowLink, Table } from '../ui/Table.tsx';
import { countText, Time } from '../ui/Time.tsx';
import { atLeastText } from './counts.ts';
import { JobsLink, SkillPageLink } from './QueueLinks.tsx';

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
  onChange,
}: {
  kind: GroupKind;
  title: string;
  groups: Groups;
  isOfAll: boolean;
  /** Of organizations: changes something of one. */
  onChange?: (organizationId: string, what: Changed) => void;
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
                <Limits kind={kind} group={group} />
                <Reasons group={group} />
              </>
            ),
          },
          ...columnsOf(kind, isOfAll),
          ...(onChange === undefined ? [] : [actions(onChange)]),
        ]}
        empty={<p className="p-4 text-[13px] text-muted">Nothing waits or runs.</p>}
      />
      {isCut && (
        <p className="border-t px-4 py-2 text-xs text-muted">
          The {countText(groups.data.length)} that wait or run the most, of{' '}
          {countText(groups.total)}.
        </p>
      )}
    </Section>
  );
}

const columnsOf = (kind: GroupKind, isOfAll: boolean): readonly Column<QueueGroup>[] => [
  {
    header: 'Waiting',
    align: 'right',
    cell: ({ waiting, at_least }) => atLeastText(waiting, at_least),
  },
  {
    header: 'Running',
    align: 'right',
    cell: (group) => <Running kind={kind} group={group} isOfAll={isOfAll} />,
  },
  {
    header: 'Later',
    align: 'right',
    from: 'sm',
    cell: ({ later, at_least }) => atLeastText(later, at_least),
  },
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

/** Whose jobs a group has; null of a skill of several organizations. */
const organizationOf = ({ organization_id }: QueueGroup, isOfAll: boolean) =>
  organization_id ?? (isOfAll ? null : pageOrganization());

const filtersOf = (kind: GroupKind, name: string) =>
  ({ organization: {}, skill: { skill: name }, agent: { agent_id: name } })[kind];

/** Leads to the runs under way. */
function Running({
  kind,
  group,
  isOfAll,
}: {
  kind: GroupKind;
  group: QueueGroup;
  isOfAll: boolean;
}) {
  const { name, running } = group;
  const organization = organizationOf(group, isOfAll);
  if (running === 0 || organization === null) return countText(running);
  return (
    <JobsLink
      organization={organization}
      filters={{ status: 'active', ...filtersOf(kind, name) }}
      className={`${aboveRowLink} ${textLink}`}
    >
      {countText(running)}
    </JobsLink>
  );
}

/** What the administrator changes of an organization. */
export type Changed = 'limit' | 'weight';

const actions = (onChange: (id: string, what: Changed) => void): Column<QueueGroup> => ({
  header: 'Actions',
  isHeaderHidden: true,
  align: 'right',
  cell: ({ name }) => (
    <div className={classes(aboveRowLink, '-my-1.5 inline-flex')}>
      <Menu
        label={`What can be done with ${name}`}
        items={[
          { label: 'Weight', icon: <Scale />, act: () => onChange(name, 'weight') },
          { label: 'Limit', icon: <Gauge />, act: () => onChange(name, 'limit') },
        ]}
      />
    </div>
  ),
});

/** `Paused · Limit: 1 run at a time · Limit: 3 runs in 5 seconds per user`. */
function Limits({ kind, group: { limits, paused } }: { kind: GroupKind; group: QueueGroup }) {
  const texts = limits.flatMap(({ limit, per: whose, per_seconds }) => {
    const per = whose === kind ? 'platform' : whose;
    return limitTexts(
      per_seconds === null
        ? { concurrency: [{ limit, per }] }
        : { rate: [{ limit, per, per_seconds }] },
    );
  });
  if (!paused && texts.length === 0) return null;
  return (
    <span className="block text-xs whitespace-normal text-muted">
      {[...(paused ? ['Paused'] : []), ...texts.map((text) => `Limit: ${text}`)].join(' · ')}
    </span>
  );
}

function Reasons({ group: { held_by } }: { group: QueueGroup }) {
  if (held_by.length === 0) return null;
  return (
    <span className="block text-xs whitespace-normal text-warn-text">
      {held_by.map(({ message }) => message).join(' ')}
    </span>
  );
}

/** Leads to the jobs that wait, of another organization to its page of queues, of a skill of several to its page. */
function Name({ kind, group, isOfAll }: { kind: GroupKind; group: QueueGroup; isOfAll: boolean }) {
  const { name, organization_id } = group;
  const organization = organizationOf(group, isOfAll);
  const text: ReactNode =
    kind === 'agent' && isOfAll ? (
      <>
        {name}{' '}
        <span className="block truncate text-xs font-normal text-muted">{organization_id}</span>
      </>
    ) : (
      name
    );
  if (organization === null) {
    return (
      <SkillPageLink skill={name} className={rowLink}>
        {text}
      </SkillPageLink>
    );
  }
  if (kind === 'organization' && organization !== pageOrganization()) {
    return (
      <a href={addressOf(name, '/queue?of=own')} className={rowLink}>
        {text}
      </a>
    );
  }
  const filters = { status: 'queued' as const, ...filtersOf(kind, name) };
  return (
    <JobsLink organization={organization} filters={filters} className={rowLink}>
      {text}
    </JobsLink>
  );
}
