import { useQueries, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { jobsQuery } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { schedulesQuery } from '../api/schedules.ts';
import { statisticsQuery, type Window } from '../api/statistics.ts';
import { webhooksQuery } from '../api/webhooks.ts';
import { ActiveJobs, activeJobsQuery } from '../overview/ActiveJobs.tsx';
import { Charts } from '../overview/Charts.tsx';
import { FirstSteps } from '../overview/FirstSteps.tsx';
import { NextSchedules } from '../overview/NextSchedules.tsx';
import { FailingSkills, SlowestSkills } from '../overview/SkillTables.tsx';
import { Tiles } from '../overview/Tiles.tsx';
import { WebhooksInTrouble } from '../overview/WebhooksInTrouble.tsx';
import { Choice } from '../ui/Choice.tsx';
import { Loaded, Skeleton } from '../ui/Loading.tsx';
import { Page, Section } from '../ui/Page.tsx';

const route = getRouteApi('/shell/');
const windows = [
  { value: 'hour', label: 'Last hour' },
  { value: 'day', label: 'Last day' },
] as const;

/** How it goes, at a glance; on a platform that has not run anything yet, how to begin. */
export function OverviewPage() {
  const { window: chosen, chart } = route.useSearch();
  const navigate = route.useNavigate();
  const window: Window = chosen === 'day' ? 'day' : 'hour';
  const statistics = useQuery(statisticsQuery(window));
  const ever = useQuery({ ...jobsQuery({ limit: 1 }), refetchInterval: live });
  const parts = useQueries({ queries: [activeJobsQuery(), webhooksQuery(), schedulesQuery()] });
  // Parts that come one after the other would push each other down.
  const isReady = [statistics, ever, ...parts].every(({ isPending }) => !isPending);
  const isNew = ever.data?.total === 0;
  return (
    <Page
      title="Overview"
      actions={
        isNew || (
          <Choice
            label="Time"
            value={window}
            choices={windows}
            onValue={(value) =>
              void navigate({ search: (before) => ({ ...before, window: value }), replace: true })
            }
          />
        )
      }
    >
      {!isReady && <Skeleton />}
      {isReady && (
        <>
          {isNew && <FirstSteps />}
          <Loaded query={statistics}>
            {(data) => (
              <>
                <Tiles statistics={data} />
                {!isNew && (
                  <Charts
                    statistics={data}
                    second={chart === 'tokens' ? 'tokens' : 'duration'}
                    onSecond={(value) =>
                      void navigate({
                        search: (before) => ({ ...before, chart: value }),
                        replace: true,
                      })
                    }
                  />
                )}
              </>
            )}
          </Loaded>
          {!isNew && (
            <>
              <Section title="Running now" flush>
                <ActiveJobs />
              </Section>
              <div className="grid gap-5 lg:grid-cols-2">
                <Section title="Most failing skills" flush>
                  <Loaded query={statistics}>
                    {({ skills }) => <FailingSkills skills={skills} window={window} />}
                  </Loaded>
                </Section>
                <Section title="Slowest skills" flush>
                  <Loaded query={statistics}>
                    {({ skills }) => <SlowestSkills skills={skills} />}
                  </Loaded>
                </Section>
                <Section title="Failing webhooks" flush>
                  <WebhooksInTrouble />
                </Section>
                <Section title="Next schedules" flush>
                  <NextSchedules />
                </Section>
              </div>
            </>
          )}
        </>
      )}
    </Page>
  );
}
