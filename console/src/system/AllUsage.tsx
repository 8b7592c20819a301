/** The model usage of all organizations in the last 30 days. */
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { apiKeysQuery } from '../api/api-keys.ts';
import type { Schema } from '../api/client.ts';
import { live } from '../api/queries.ts';
import { allUsageQuery } from '../api/usage.ts';
import { useSession } from '../shell/session.ts';
import { Select } from '../ui/Field.tsx';
import { ChartColumn } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { type Column, Table } from '../ui/Table.tsx';
import { countText } from '../ui/Time.tsx';
import { dayText } from '../usage/DayBars.tsx';
import { dayColumns } from '../usage/Usage.tsx';

type Line = Schema<'OwnerUsageOfDay'>;

const route = getRouteApi('/shell/system');
const kinds: readonly [Line['owner_kind'], string][] = [
  ['agent', 'Agents'],
  ['deleted_agent', 'Deleted agents'],
  ['api_key', 'API keys'],
  ['scheduled_job', 'Schedules'],
  ['user', 'Users'],
  ['skill', 'Skills'],
  ['embedding_model', 'Models of vectors'],
];

export function AllUsage() {
  const {
    owner_kind: kind = 'agent',
    organization_id: organization = '',
    page = 1,
  } = route.useSearch();
  const navigate = route.useNavigate();
  const { organizations } = useSession();
  const query = useQuery({
    ...allUsageQuery({
      owner_kind: kind as Line['owner_kind'],
      ...(organization && { organization_id: organization }),
      limit: pageSize,
      offset: (page - 1) * pageSize,
    }),
    refetchInterval: live,
  });
  const filter = (change: Record<string, string | number>) => {
    const filters = { owner_kind: kind, organization_id: organization, ...change };
    const search = Object.entries(filters).filter(([, value]) => value);
    void navigate({ search: Object.fromEntries(search), resetScroll: false });
  };
  return (
    <Section
      title="Tokens and cost in the last 30 days"
      flush
      actions={
        <>
          <div className="w-36 sm:w-44">
            <Select
              aria-label="Organization"
              value={organization}
              onChange={({ target }) => filter({ organization_id: target.value })}
            >
              <option value="">All organizations</option>
              {organizations.map((id) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </Select>
          </div>
          <div className="w-36 sm:w-44">
            <Select
              aria-label="Counted for"
              value={kind}
              onChange={({ target }) => filter({ owner_kind: target.value })}
            >
              {kinds.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </Select>
          </div>
        </>
      }
    >
      <Loaded query={query}>
        {({ data, total }) => (
          <>
            <Table
              caption="Tokens used, by day and by whom"
              columns={columns}
              rows={data}
              rowKey={(line) => `${line.day} ${line.organization_id} ${line.owner_id}`}
              empty={
                <Empty icon={<ChartColumn />} title="No calls of models">
                  Tokens are counted for the agent, the API key, the schedule, the user and the
                  skill of each run.
                </Empty>
              }
            />
            {total > 0 && (
              <Pagination page={page} total={total} onPage={(next) => filter({ page: next })} />
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

const columns: readonly Column<Line>[] = [
  { header: 'Day', cell: ({ day }) => <span title={day}>{dayText(day)}</span> },
  { header: 'Counted for', grows: true, cell: (line) => <OwnerLink line={line} /> },
  { header: 'Organization', from: 'md', cell: ({ organization_id }) => organization_id },
  ...(dayColumns as readonly Column<Line>[]),
  {
    header: 'Budget a day',
    align: 'right',
    from: 'lg',
    cell: ({ tokens_per_day }) =>
      tokens_per_day === null ? (
        <span className="text-muted">none</span>
      ) : (
        countText(tokens_per_day)
      ),
  },
];

/** Agents and schedules can be looked at in the organization that one is in. */
function OwnerLink({ line: { owner_kind, owner_id, organization_id } }: { line: Line }) {
  const session = useSession();
  const keys = useQuery({ ...apiKeysQuery(), enabled: owner_kind === 'api_key' }).data;
  const link = 'font-medium hover:underline';
  if (owner_kind === 'api_key') {
    const name = keys?.find(({ id }) => id === owner_id)?.client_name ?? owner_id;
    return (
      <Link to="/api-keys/$keyId" params={{ keyId: owner_id }} className={link}>
        {name}
      </Link>
    );
  }
  const hasPage = owner_kind === 'agent' || owner_kind === 'scheduled_job';
  if (!hasPage || organization_id !== session.organization_id) return owner_id;
  return owner_kind === 'agent' ? (
    <Link to="/agents/$agentId" params={{ agentId: owner_id }} className={link}>
      {owner_id}
    </Link>
  ) : (
    <Link to="/schedules/$scheduleId" params={{ scheduleId: owner_id }} className={link}>
      {owner_id}
    </Link>
  );
}
