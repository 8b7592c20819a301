import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { boundedTotalMax, type JobFilters as Filters, jobsQuery } from '../api/jobs.ts';
import type { ManyFilters } from '../api/many-jobs.ts';
import { live } from '../api/queries.ts';
import { JobFilters, type JobSearch, windows } from '../jobs/JobFilters.tsx';
import { JobsTable } from '../jobs/JobsTable.tsx';
import { ManyJobs } from '../jobs/ManyJobs.tsx';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { Code } from '../ui/Code.tsx';
import { ListChecks } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { skillNameOf } from '../ui/Pickers.tsx';
import { changed } from '../ui/search.ts';

const route = getRouteApi('/shell/jobs');

/** The filters of a url. The platform validates the values. */
function filtersFor({ skill, since: _, ...words }: JobSearch, page: number): Filters {
  return {
    ...(words as Filters),
    ...(skill === undefined ? {} : skillNameOf(skill)),
    include: 'timing',
    limit: pageSize,
    offset: (page - 1) * pageSize,
  };
}

/** The filters of the list as the commands for many jobs take them: those of now. */
function manyFilters({ skill, since, ...words }: JobSearch): ManyFilters {
  const ms = windows[since ?? '']?.ms;
  return {
    ...(words as ManyFilters),
    ...(skill === undefined ? {} : skillNameOf(skill)),
    ...(ms !== undefined && { created_after: new Date(Date.now() - ms).toISOString() }),
  };
}

export function JobsPage() {
  const { page = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const jobs = useQuery({
    ...jobsQuery(filtersFor(filters, page), windows[filters.since ?? '']?.ms),
    refetchInterval: live,
  });
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title="Jobs"
      actions={
        <ButtonLink to="/skills" look="secondary">
          Run a skill
        </ButtonLink>
      }
    >
      <JobFilters
        search={filters}
        clear={isFiltered ? clear : undefined}
        onSearch={(change) => void navigate({ search: (before) => changed(before, change) })}
      />
      <Section
        flush
        {...(isFiltered && {
          title: 'Filtered jobs',
          actions: <ManyJobs filters={() => manyFilters(filters)} skill={filters.skill} />,
        })}
      >
        <Loaded query={jobs} lines={12}>
          {({ data, total }) =>
            total === 0 ? (
              <None isFiltered={isFiltered} clear={clear} />
            ) : (
              <>
                <JobsTable caption="Jobs, newest first" jobs={data} />
                <Pagination
                  page={page}
                  total={total}
                  countedMax={filters.since === undefined ? undefined : boundedTotalMax}
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
  if (isFiltered) {
    return (
      <Empty
        icon={<ListChecks />}
        title="No matching jobs"
        action={<Button onClick={clear}>Clear the filters</Button>}
      >
        No stored job matches all filters.
      </Empty>
    );
  }
  return (
    <Empty
      icon={<ListChecks />}
      title="No jobs yet"
      action={
        <ButtonLink to="/skills" look="primary">
          Run a skill
        </ButtonLink>
      }
    >
      <p className="mb-3">Every run of a skill is a job. Run one here, or with an API key:</p>
      <div className="text-left">
        <Code label="Command" text={firstCall()} />
      </div>
    </Empty>
  );
}

const firstCall = () =>
  `curl -s ${location.origin}/api/util/v1.0/echo \\
  -H "x-api-key: $KEY" -H 'content-type: application/json' \\
  -d '{"text": "hello"}'`;
