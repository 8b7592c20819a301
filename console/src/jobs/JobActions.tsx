import { useNavigate } from '@tanstack/react-router';
import { type Job, retryJob } from '../api/jobs.ts';
import { useMissingToRun } from '../skills/useMissingToRun.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { Pencil, Play, RotateCcw } from '../ui/icons.tsx';
import { Permitted } from '../ui/NeedsScope.tsx';
import { useAct } from '../ui/useAct.ts';
import { CancelJob } from './CancelJob.tsx';

/** What can be done with a job in its state. */
export function JobActions({ job }: { job: Job }) {
  const { job_id: jobId, status, skill_category, skill_version, skill_name } = job;
  const navigate = useNavigate();
  const missing = useMissingToRun(job);
  const isRetryable = status === 'failed' || status === 'cancelled';
  const retry = useAct({
    act: (resume: boolean) => retryJob(jobId, resume),
    done: 'It runs again, as a new job',
    failed: 'It does not run again',
    changes: [['jobs', 'list']],
  });
  const runAgain = (resume: boolean) =>
    retry.mutate(resume, {
      onSuccess: ({ job_id }) => void navigate({ to: '/jobs/$jobId', params: { jobId: job_id } }),
    });
  return (
    <>
      <CancelJob job={job} />
      <ButtonLink
        to="/skills/$category/$version/$name"
        params={{ category: skill_category, version: skill_version, name: skill_name }}
        search={{ tab: 'run', from: jobId }}
        icon={<Pencil />}
      >
        Run with changes
      </ButtonLink>
      {isRetryable && (
        <Permitted missing={missing} act="A retry">
          <Button
            look="primary"
            icon={<Play />}
            busy={retry.isPending}
            title="Goes on from what the job has recorded: nothing finished is done or paid again"
            onClick={() => runAgain(true)}
          >
            Resume
          </Button>
          <Button icon={<RotateCcw />} busy={retry.isPending} onClick={() => runAgain(false)}>
            Retry
          </Button>
        </Permitted>
      )}
    </>
  );
}
