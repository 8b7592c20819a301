import { hasEnded, type Job } from '../api/jobs.ts';
import { CancelJob } from '../jobs/CancelJob.tsx';
import { ErrorWords } from '../jobs/ErrorWords.tsx';
import { Logs } from '../jobs/Logs.tsx';
import { Progress } from '../jobs/Progress.tsx';
import { useRunningJob } from '../jobs/useRunningJob.ts';
import { ButtonLink } from '../ui/Button.tsx';
import { Json } from '../ui/Code.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { countText, Duration } from '../ui/Time.tsx';

/** A run beside its form: live events and the result. */
export function RunResult({ jobId }: { jobId: string }) {
  const { job, events } = useRunningJob(jobId);
  return (
    <Section
      title="Run"
      flush
      actions={
        <ButtonLink size="small" to="/jobs/$jobId" params={{ jobId }}>
          Open the job
        </ButtonLink>
      }
    >
      <Loaded query={job} lines={3}>
        {(read) => <Outcome job={read} />}
      </Loaded>
      <h3 className="border-t px-4 pt-2.5 text-xs font-medium text-muted">Events</h3>
      <Logs events={events} isLive={job.data === undefined || !hasEnded(job.data)} isAlone />
    </Section>
  );
}

function Outcome({ job }: { job: Job }) {
  const { status, progress, total_token_stats: tokens, error } = job;
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-[13px]">
        <span role="status">
          <Status value={status} />
        </span>
        {job.duration_ms !== null && <Duration ms={job.duration_ms} />}
        {job.attempt > 1 && (
          <span className="text-muted">
            attempt {job.attempt} of {job.max_attempts}
          </span>
        )}
        {(tokens.total_tokens ?? 0) > 0 && (
          <span className="text-muted tabular-nums">{countText(tokens.total_tokens)} tokens</span>
        )}
        <div className="ml-auto">
          <CancelJob job={job} size="small" />
        </div>
      </div>
      {!hasEnded(job) && progress !== null && <Progress {...progress} />}
      {error !== null && status !== 'cancelled' && <ErrorWords error={error} />}
      {status === 'completed' && <Json value={job.output} label="Output" />}
    </div>
  );
}
