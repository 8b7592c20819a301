import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { cancelJob, jobQuery } from '../api/jobs.ts';
import { useJobEvents } from '../api/stream.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { Json } from '../ui/Code.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { countText, Duration } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';
import { EventLog } from './EventLog.tsx';

const ended: readonly string[] = ['completed', 'failed', 'cancelled'];
/** How often the job is read while it is under way; its events say at once when it has ended. */
const readMs = 1_000;
const endedReadMs = 100;

/** A run beside the form that began it: what it says as it happens, and what came of it. */
export function RunResult({ jobId }: { jobId: string }) {
  const events = useJobEvents(jobId);
  const hasEnded = events.some(
    ({ type, data }) => type === 'status' && ended.includes(String(data['status'])),
  );
  const query = useQuery({
    ...jobQuery(jobId),
    refetchInterval: ({ state }) =>
      ended.includes(state.data?.status ?? '') ? false : hasEnded ? endedReadMs : readMs,
  });
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
      <Loaded query={query} lines={3}>
        {(job) => <Outcome job={job} />}
      </Loaded>
      <h3 className="border-t px-4 pt-2.5 pb-1 text-xs font-medium text-muted">Events</h3>
      <EventLog events={events} />
    </Section>
  );
}

function Outcome({ job }: { job: Schema<'Job'> }) {
  const { status, progress, token_stats: tokens, error } = job;
  const isUnderWay = !ended.includes(status);
  const cancelling = useAct({
    act: () => cancelJob(job.job_id),
    failed: 'The job was not cancelled',
    changes: [['jobs']],
  });
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
        {isUnderWay && (
          <Button
            size="small"
            className="ml-auto"
            busy={cancelling.isPending}
            onClick={() => cancelling.mutate()}
          >
            Cancel
          </Button>
        )}
      </div>
      {isUnderWay && progress !== null && (
        <div className="flex items-center gap-3 text-xs text-muted">
          <progress
            value={progress.fraction}
            aria-label="Progress of the run"
            className="h-1.5 grow overflow-hidden rounded-full [&::-webkit-progress-bar]:bg-hover [&::-webkit-progress-value]:bg-accent"
          />
          <span className="tabular-nums">{Math.round(progress.fraction * 100)} %</span>
          {progress.note}
        </div>
      )}
      {error !== null && (
        <div className="rounded-md bg-bad-soft px-3 py-2.5 text-[13px] text-bad-text">
          <p className="break-words">{error.message}</p>
          <p className="mt-1 font-mono text-xs">{error.code}</p>
        </div>
      )}
      {error?.code === 'missing_credentials' && (
        <p className="text-[13px] text-muted">
          The agent has no credentials for its model: see{' '}
          <Link to="/agents/$agentId" params={{ agentId: job.agent_id }} className="underline">
            {job.agent_id}
          </Link>
          .
        </p>
      )}
      {status === 'completed' && <Json value={job.output} label="Output" />}
    </div>
  );
}
