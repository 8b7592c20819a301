import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type ApprovalFilters, approvalsQuery } from '../api/approvals.ts';
import { ApprovalFeed, FeedKeys } from '../approvals/ApprovalFeed.tsx';
import { Button } from '../ui/Button.tsx';
import { Code } from '../ui/Code.tsx';
import { FilterChip, FilterSelect, Filters } from '../ui/Filters.tsx';
import { UserCheck } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination } from '../ui/Pagination.tsx';
import { AgentFilter } from '../ui/Pickers.tsx';
import { changed } from '../ui/search.ts';

const route = getRouteApi('/shell/approvals');
const shownMax = 20;
const statuses = ['pending', 'approved', 'rejected', 'expired', 'cancelled'];
/** In the url: approvals of every state. Without a word there it is those that are pending. */
const anyStatus = 'any';

export function ApprovalsPage() {
  const { page = 1, status = 'pending', ...others } = route.useSearch();
  const navigate = route.useNavigate();
  const asked = { ...others, ...(status !== anyStatus && { status }) } as ApprovalFilters;
  const query = useQuery(approvalsQuery(asked, shownMax, (page - 1) * shownMax));
  const isFiltered = status !== 'pending' || Object.keys(others).length > 0;
  const clear = () => void navigate({ search: {} });
  const narrow = (change: {
    status?: string | undefined;
    agent_id?: string | undefined;
    job_id?: undefined;
  }) => void navigate({ search: (before) => changed(before, change) });
  return (
    <Page title="Approvals">
      <Filters label="Filter approvals" clear={isFiltered ? clear : undefined}>
        <FilterSelect
          label="Status"
          value={status === anyStatus ? undefined : status}
          onValue={(value = anyStatus) =>
            narrow({ status: value === 'pending' ? undefined : value })
          }
          options={statuses.map((value) => ({ value }))}
        />
        <AgentFilter value={others.agent_id} onValue={(agent_id) => narrow({ agent_id })} />
        {others.job_id && (
          <FilterChip
            label="Job"
            value={others.job_id}
            onClear={() => narrow({ job_id: undefined })}
          />
        )}
      </Filters>
      <Loaded query={query} lines={8}>
        {({ data, total }) =>
          total === 0 ? (
            <Section>
              <None isFiltered={isFiltered} clear={clear} />
            </Section>
          ) : (
            <>
              <FeedKeys />
              <ApprovalFeed approvals={data} />
              {total > shownMax && (
                <Section flush>
                  <Pagination
                    page={page}
                    size={shownMax}
                    total={total}
                    onPage={(next) =>
                      void navigate({ search: (before) => ({ ...before, page: next }) })
                    }
                  />
                </Section>
              )}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function None({ isFiltered, clear }: { isFiltered: boolean; clear: () => void }) {
  if (isFiltered) {
    return (
      <Empty
        icon={<UserCheck />}
        title="No matching approvals"
        action={<Button onClick={clear}>Show what is pending</Button>}
      >
        No stored approval matches all filters.
      </Empty>
    );
  }
  return (
    <Empty icon={<UserCheck />} title="Nothing to decide">
      <p className="mb-3">
        A skill asks a person before it goes on, and an agent before its model calls a skill that
        its settings name under “Ask before”:
      </p>
      <div className="text-left">
        <Code label="Code of a skill" text={example} />
      </div>
    </Empty>
  );
}

const example = `const { approved } = await ctx.approve('ship', {
  title: 'Ship order 1042?',
  details: { total: '129.00 EUR' },
  timeout: '7d',
});`;
