import type { QueryKey, UseQueryResult } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { Schema } from '../api/client.ts';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Pencil, RefreshCw, Trash2 } from '../ui/icons.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { Nothing, Status, type Tone } from '../ui/Status.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { Tags } from '../ui/Tags.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { claimsOf } from './definition-text.ts';
import { Quarantine, type VersionActs } from './Quarantine.tsx';

type Version = Schema<'RemoteSkillVersion'>;

/** What all kinds of services outside show. */
export interface Source {
  readonly name: string;
  readonly category: string;
  readonly organizations: readonly string[];
  readonly are_organizations_named: boolean;
  readonly status: string;
  readonly fault: string | null;
  readonly refreshed_at: string | null;
  readonly left_out: readonly { readonly tool: string; readonly reason: string }[];
  readonly left_out_total: number;
  readonly skills: Version[];
}

/** The states of services outside that have other colours than the states of jobs with the same words. */
const sourceTones: Record<string, Tone> = { needs_authorization: 'warn' };

const SourceStatus = ({ value }: { value: string }) => {
  const tone = sourceTones[value];
  return <Status value={value} {...(tone === undefined ? {} : { tone })} />;
};

export type Fact = readonly [name: string, value: ReactNode] | null | false;

/** How a kind of services outside is read and changed. */
interface SourceActs<One extends Source> extends VersionActs {
  readonly refresh: (name: string) => Promise<One>;
  readonly remove: (name: string) => Promise<unknown>;
  /** The form that changes it. */
  readonly form: (source: One, close: () => void) => ReactNode;
}

/** The page of a remote source: its settings, its versions in quarantine and its skills. */
export function SourcePage<One extends Source>({
  name,
  parent,
  query,
  changes,
  acts,
  facts,
  what,
  extra,
}: {
  name: string;
  parent: { label: string; to: string };
  query: UseQueryResult<One>;
  changes: readonly QueryKey[];
  acts: SourceActs<One>;
  facts: (source: One) => readonly Fact[];
  /** The words for the source and for what it offers: `server` and `tool`. */
  what: { readonly source: string; readonly tool: string };
  extra?: (source: One) => ReactNode;
}) {
  const [open, setOpen] = useState<'edit' | 'remove' | null>(null);
  const close = () => setOpen(null);
  const navigate = useNavigate();
  const refresh = useAct({
    act: () => acts.refresh(name),
    done: ({ status }) => (status === 'available' ? `${name} is refreshed` : undefined),
    failed: `${name} was not refreshed`,
    changes,
  });
  const remove = useAct({
    async act() {
      await acts.remove(name);
      // Before anything is read again: it is not there any more.
      await navigate({ to: parent.to });
    },
    done: `${name} is removed`,
    changes,
    quiet: true,
  });
  const { data } = query;
  return (
    <Page
      title={name}
      parent={parent}
      about={data && <SourceStatus value={data.status} />}
      actions={
        data && (
          <>
            <Button icon={<RefreshCw />} busy={refresh.isPending} onClick={() => refresh.mutate()}>
              Refresh
            </Button>
            <Button icon={<Pencil />} onClick={() => setOpen('edit')}>
              Edit
            </Button>
            <Menu
              label="More"
              items={[
                {
                  ...{ label: 'Remove', icon: <Trash2 />, isDanger: true },
                  act: () => setOpen('remove'),
                },
              ]}
            />
          </>
        )
      }
    >
      <Loaded query={query}>
        {(source) => (
          <>
            {!source.are_organizations_named && <Unnamed onEdit={() => setOpen('edit')} />}
            <Section title={what.source}>
              <Facts
                facts={[
                  source.fault !== null && ['Last fault', source.fault],
                  ...facts(source),
                  ['Category and scope', source.category],
                  ['Organizations', organizationsOf(source)],
                  ['Refreshed', <Time key="refreshed" value={source.refreshed_at} />],
                ]}
              />
            </Section>
            {extra?.(source)}
            <Quarantine source={source} tool={what.tool} acts={acts} changes={changes} />
            <Skills source={source} what={what} />
            {open === 'edit' && acts.form(source, close)}
          </>
        )}
      </Loaded>
      <Confirm
        open={open === 'remove'}
        onClose={close}
        title={`Remove ${name}?`}
        verb="Remove"
        act={() => remove.mutateAsync()}
      >
        Its skills become inactive, and their jobs that have not ended fail.
      </Confirm>
    </Page>
  );
}

const organizationsOf = ({ organizations }: Pick<Source, 'organizations'>) =>
  organizations.includes('*') ? 'All' : <Tags key="organizations" values={organizations} />;

/** Of a source that an earlier version of the platform has stored. */
function Unnamed({ onEdit }: { onEdit: () => void }) {
  return (
    <div
      role="note"
      className="mb-4 flex flex-wrap items-center gap-3 rounded-md bg-warn-soft px-4 py-3 text-[13px] text-warn-text"
    >
      <p className="min-w-0 flex-1">
        It belongs to all organizations, because it was added before organizations could be named.
        Each of them acts with its credentials.
      </p>
      <Button size="small" onClick={onEdit}>
        Name organizations
      </Button>
    </div>
  );
}

function Skills({
  source: { skills, left_out: leftOut, left_out_total: total },
  what: { source, tool },
}: {
  source: Source;
  what: { readonly source: string; readonly tool: string };
}) {
  return (
    <>
      <Section title="Skills" flush>
        <Table
          caption="Skills"
          columns={columns}
          rows={skills}
          rowKey={({ skill }) => skill}
          empty={
            <p className="p-4 text-muted">
              The {source.toLowerCase()} has offered no {tool} yet.
            </p>
          }
        />
      </Section>
      {leftOut.length > 0 && (
        <Section title={`What could not become skills (${total})`}>
          <ul className="list-disc pl-5 wrap-anywhere">
            {leftOut.map(({ tool: name, reason }) => (
              <li key={name + reason}>{reason}</li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

const columns: readonly Column<Version>[] = [
  { header: 'Skill', cell: ({ skill }) => <span className="font-mono text-xs">{skill}</span> },
  {
    header: 'State',
    cell: ({ state }) => <Status value={state} tone={toneOf[state]} />,
  },
  {
    header: 'Accounts of',
    from: 'lg',
    cell: ({ organizations }) =>
      organizations === null ? <Nothing /> : <Tags values={organizations} />,
  },
  {
    header: 'Retried',
    from: 'lg',
    cell: ({ retried }) => (retried ? 'yes' : <span className="text-muted">no</span>),
  },
  {
    header: 'Claims of its server',
    from: 'lg',
    cell: ({ annotations }) => <Tags values={claimsOf(annotations)} />,
  },
  {
    header: 'What it says',
    from: 'md',
    grows: true,
    cell: ({ description, reason }) =>
      reason ?? <span className="line-clamp-2">{description}</span>,
  },
];

const toneOf = {
  active: 'good',
  quarantined: 'warn',
  withdrawn: 'bad',
  rejected: 'neutral',
} as const;

interface Summary extends Omit<Source, 'skills'> {
  readonly skills: { readonly active: number; readonly quarantined: number };
}

/** The columns of a list of services outside. */
export const summaryColumns = <Row extends Summary>(
  to: '/mcp-servers/$name' | '/openapi-imports/$name',
  addressOf: (source: Row) => string | null,
): readonly Column<Row>[] => [
  {
    header: 'Name',
    cell: ({ name }) => (
      <Link to={to} params={{ name }} className={rowLink}>
        {name}
      </Link>
    ),
  },
  { header: 'State', cell: ({ status }) => <SourceStatus value={status} /> },
  {
    header: 'Address',
    from: 'md',
    grows: true,
    cell: (source) => <span className="font-mono text-xs">{addressOf(source) ?? '–'}</span>,
  },
  {
    header: 'Organizations',
    from: 'lg',
    cell: (source) =>
      source.are_organizations_named ? (
        organizationsOf(source)
      ) : (
        <Status value="not named" tone="warn" />
      ),
  },
  {
    header: 'Active skills',
    align: 'right',
    from: 'sm',
    cell: ({ skills }) => String(skills.active),
  },
  {
    header: 'In quarantine',
    align: 'right',
    cell: ({ skills }) => String(skills.quarantined),
  },
  {
    header: 'Refreshed',
    align: 'right',
    from: 'md',
    cell: ({ refreshed_at }) => <Time value={refreshed_at} />,
  },
];
