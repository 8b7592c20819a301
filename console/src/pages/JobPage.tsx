import { getRouteApi, Link } from '@tanstack/react-router';
import type { JobEvent } from '../api/follow.ts';
import { hasEnded, type Job, stepsPageSize } from '../api/jobs.ts';
import { JobApprovals } from '../approvals/JobApprovals.tsx';
import { Deliveries } from '../jobs/Deliveries.tsx';
import { JobActions } from '../jobs/JobActions.tsx';
import { JobOverview } from '../jobs/JobOverview.tsx';
import { Logs } from '../jobs/Logs.tsx';
import { Progress } from '../jobs/Progress.tsx';
import { Source } from '../jobs/Source.tsx';
import { useRelated } from '../jobs/useRelated.ts';
import { useRunningJob } from '../jobs/useRunningJob.ts';
import { Waits } from '../jobs/Waits.tsx';
import { Json } from '../ui/Code.tsx';
import { AgentLink, textLink } from '../ui/Links.tsx';
import { Skeleton } from '../ui/Loading.tsx';
import { moneyText } from '../ui/Money.ts';
import { Page, Section } from '../ui/Page.tsx';
import { Pagination } from '../ui/Pagination.tsx';
import { Pending } from '../ui/Pending.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { Status } from '../ui/Status.tsx';
import { Strip } from '../ui/Strip.tsx';
import { Tabs } from '../ui/Tabs.tsx';
import { countText, Duration, Time, useNow } from '../ui/Time.tsx';

const route = getRouteApi('/shell/jobs/$jobId');
const parent = { label: 'Jobs', to: '/jobs' };

export function JobPage() {
  const { jobId } = route.useParams();
  const { tab = 'overview', page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const { job: query, steps, waiting, events, isReady } = useRunningJob(jobId, page);
  const related = useRelated(jobId, waiting.waits);
  const job = query.data;
  if (job === undefined) {
    return (
      <Page title="Job" parent={parent}>
        <Pending query={query} />
      </Page>
    );
  }
  return (
    <Page
      title={skillPath(job)}
      parent={parent}
      about={<Status value={job.status} />}
      actions={<JobActions job={job} />}
    >
      <Head job={job} />
      <Now job={job} events={events} />
      <Tabs
        value={tab}
        onValue={(next) =>
          void navigate({ search: next === 'overview' ? {} : { tab: next }, replace: true })
        }
        tabs={[
          {
            value: 'overview',
            label: 'Overview',
            content:
              isReady && related.isReady ? (
                <JobOverview
                  job={job}
                  steps={steps?.data ?? []}
                  events={events}
                  waits={
                    <>
                      {related.isAsking && <JobApprovals jobId={jobId} />}
                      <Waits {...waiting} />
                    </>
                  }
                  pages={
                    (steps?.total ?? 0) > stepsPageSize && (
                      <Pagination
                        page={page}
                        size={stepsPageSize}
                        total={steps?.total ?? 0}
                        onPage={(next) =>
                          void navigate({ search: (before) => ({ ...before, page: next }) })
                        }
                      />
                    )
                  }
                />
              ) : (
                <Skeleton />
              ),
          },
          {
            value: 'logs',
            label: 'Logs',
            content: (
              <Section
                title="Log and messages"
                actions={<span className="text-xs text-muted">Times are UTC</span>}
                flush
              >
                <Logs events={events} isLive={!hasEnded(job)} />
              </Section>
            ),
          },
          { value: 'deliveries', label: 'Deliveries', content: <Deliveries job={job} /> },
          {
            value: 'raw',
            label: 'Raw',
            content: <Json label="The job as JSON" value={job} tall />,
          },
        ]}
      />
    </Page>
  );
}

function Head({ job }: { job: Job }) {
  const { skill_category: category, skill_version: version, skill_name: name } = job;
  return (
    <Strip
      facts={[
        [
          'Skill',
          <Link
            key="skill"
            to="/skills/$category/$version/$name"
            params={{ category, version, name }}
            className={textLink}
          >
            {name}
          </Link>,
        ],
        ['Agent', <AgentLink key="agent" id={job.agent_id} />],
        [
          'Conversation',
          <Link
            key="conversation"
            to="/conversations/$conversationId"
            params={{ conversationId: job.conversation_id }}
            className={textLink}
          >
            Transcript
          </Link>,
        ],
        job.parent_job_id !== null && [
          'Started by',
          <Link
            key="parent"
            to="/jobs/$jobId"
            params={{ jobId: job.parent_job_id }}
            className={textLink}
          >
            Parent job
          </Link>,
        ],
        ['Source', <Source key="source" job={job} />],
        ['Accepted', <Time key="accepted" value={job.created_at} />],
        [hasEnded(job) ? 'Took' : 'So far', <Took key="took" job={job} />],
        job.attempt > 1 && ['Attempt', `${job.attempt} of ${job.max_attempts}`],
        job.total_token_stats.total_tokens !== 0 && [
          'Tokens',
          countText(job.total_token_stats.total_tokens),
        ],
        job.total_token_stats.cost_usd !== 0 && [
          'Cost',
          moneyText(job.total_token_stats.cost_usd, job.total_token_stats.cost_is_partial),
        ],
      ]}
    />
  );
}

/** From being accepted to its end, with all waits and attempts. */
function Took({ job }: { job: Job }) {
  const start = Date.parse(job.created_at);
  if (job.finished_at !== null) return <Duration ms={Date.parse(job.finished_at) - start} />;
  return <SoFar start={start} />;
}

function SoFar({ start }: { start: number }) {
  return <Duration ms={Math.max(0, useNow() - start)} />;
}

/** How far a running job is, as the stream said last. */
function Now({ job, events }: { job: Job; events: readonly JobEvent[] }) {
  if (hasEnded(job)) return null;
  const last = events.findLast(({ type }) => type === 'progress')?.data as Job['progress'];
  const progress = last ?? job.progress;
  if (job.status === 'queued' && Date.parse(job.run_at) > Date.now()) {
    return (
      <p className="text-[13px] text-muted">
        It is {job.attempt > 0 ? 'tried again' : 'due'} <Time value={job.run_at} />.
      </p>
    );
  }
  return progress && <Progress {...progress} />;
}
