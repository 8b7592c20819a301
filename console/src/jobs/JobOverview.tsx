import type { ReactNode } from 'react';
import type { JobEvent } from '../api/follow.ts';
import { hasEnded, type Job, type JobStep } from '../api/jobs.ts';
import { Id } from '../ui/Id.tsx';
import { JobLink } from '../ui/Links.tsx';
import { Facts, Section } from '../ui/Page.tsx';
import { Duration, Time } from '../ui/Time.tsx';
import { costFact, tokensFact } from '../ui/tokens.ts';
import { Value } from '../ui/Value.tsx';
import { ChildJobs } from './ChildJobs.tsx';
import { ErrorWords } from './ErrorWords.tsx';
import { textOfStep } from './SpanDetails.tsx';
import { spansOf } from './spans.ts';
import { Timeline } from './Timeline.tsx';
import { sourceText } from './words.ts';

/** The input, timeline and output of a job. */
export function JobOverview({
  job,
  steps,
  events,
  waits,
  pages,
}: {
  job: Job;
  steps: readonly JobStep[];
  events: readonly JobEvent[];
  /** What it waits for now. */
  waits: ReactNode;
  /** Leads to further steps, where one page has not all. */
  pages: ReactNode;
}) {
  return (
    <div className="flex flex-col gap-5">
      {job.error && job.status !== 'cancelled' && <ErrorWords error={job.error} />}
      {waits}
      {job.agent_overrides && (
        <Section title="Tried with settings that are not the agent’s">
          <Value label="Settings of this run" value={job.agent_overrides} />
        </Section>
      )}
      <Section title="Trace" flush>
        <Timeline jobId={job.job_id} spans={spansOf(job, events, steps)} events={events} />
        {pages}
      </Section>
      <ChildJobs job={job} />
      <div className="grid gap-5 lg:grid-cols-2">
        <Section title="Input">
          <Value label="Input" value={job.input} />
        </Section>
        <Section title="Output">
          <Output job={job} steps={steps} events={events} />
        </Section>
      </div>
      <Section title="Facts">
        <div className="grid items-start gap-x-10 gap-y-2 lg:grid-cols-2">
          <Ids job={job} />
          <Numbers job={job} />
        </div>
      </Section>
    </div>
  );
}

function Output({
  job,
  steps,
  events,
}: {
  job: Job;
  steps: readonly JobStep[];
  events: readonly JobEvent[];
}) {
  if (job.status === 'completed') return <Value label="Output" value={job.output} />;
  if (hasEnded(job)) return <p className="text-muted">None: the job has not completed.</p>;
  // The model's answer to a tool is not part of the job's answer.
  const thinking = steps.findLast(
    ({ kind, parent_step_id }) => kind === 'model' && parent_step_id === null,
  );
  const text = thinking ? textOfStep(events, thinking.step) : '';
  return (
    <>
      {text !== '' && (
        <p className="mb-2 leading-relaxed break-words whitespace-pre-wrap">{text}</p>
      )}
      <p className="text-muted">Available when the job has completed.</p>
    </>
  );
}

function Ids({ job }: { job: Job }) {
  return (
    <Facts
      facts={[
        ['Job', <Id key="job" value={job.job_id} label="job id" />],
        [
          'Conversation',
          <Id key="conversation" value={job.conversation_id} label="conversation id" />,
        ],
        job.retry_of !== null && [
          job.is_resumed ? 'Goes on from' : 'Retry of',
          <JobLink key="of" id={job.retry_of} />,
        ],
        job.delivered_to !== null && [
          'Message taken by',
          <JobLink key="delivered" id={job.delivered_to} />,
        ],
        ['Queue', job.queue],
        job.waiting_for !== null && ['Waits for', job.waiting_for],
        ['Priority', job.priority],
        ...(job.job_key === null ? [] : [['Key', job.job_key] as const]),
        ['Source', sourceText(job.trigger_type)],
        ['Started by', job.user_id],
      ]}
    />
  );
}

function Numbers({ job }: { job: Job }) {
  const cost = costFact(job);
  return (
    <Facts
      facts={[
        ['Accepted', <Time key="accepted" value={job.created_at} exact />],
        ['Due', <Time key="due" value={job.run_at} exact />],
        job.expires_at !== null && [
          'Expires unless begun',
          <Time key="expires" value={job.expires_at} exact />,
        ],
        ['Started', <Time key="started" value={job.started_at} exact />],
        ['Finished', <Time key="finished" value={job.finished_at} exact />],
        ['Last attempt', <Duration key="duration" ms={job.duration_ms} />],
        ['Attempts', `${job.attempt} of at most ${job.max_attempts}`],
        ['Tokens', tokensFact(job)],
        cost !== null && ['Cost', cost],
      ]}
    />
  );
}
