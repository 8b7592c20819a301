import { useNavigate } from '@tanstack/react-router';
import { CircleX, Pencil, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { cancelJob, hasEnded, type Job, retryJob } from '../api/jobs.ts';
import { Button, ButtonLink } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { useAct } from '../ui/useAct.ts';

/** What can be done with a job in its state. */
export function JobActions({ job }: { job: Job }) {
  const { job_id: jobId, status, skill_category, skill_version, skill_name } = job;
  const [isAsking, setAsking] = useState(false);
  const navigate = useNavigate();
  const cancel = useAct({
    act: () => cancelJob(jobId),
    done: ({ status: now }) =>
      now === 'cancelled' ? 'The job is cancelled' : 'The job is stopping',
    changes: [['jobs']],
    quiet: true,
  });
  const retry = useAct({
    act: () => retryJob(jobId),
    done: 'It runs again, as a new job',
    failed: 'It does not run again',
    changes: [['jobs', 'list']],
  });
  return (
    <>
      {!hasEnded(job) && (
        <Button look="danger" icon={<CircleX />} onClick={() => setAsking(true)}>
          Cancel
        </Button>
      )}
      <ButtonLink
        to="/skills/$category/$version/$name"
        params={{ category: skill_category, version: skill_version, name: skill_name }}
        search={{ tab: 'run', from: jobId }}
        icon={<Pencil />}
      >
        Run with changes
      </ButtonLink>
      {(status === 'failed' || status === 'cancelled') && (
        <Button
          look="primary"
          icon={<RotateCcw />}
          busy={retry.isPending}
          onClick={() =>
            retry.mutate(undefined, {
              onSuccess: ({ job_id }) =>
                void navigate({ to: '/jobs/$jobId', params: { jobId: job_id } }),
            })
          }
        >
          Retry
        </Button>
      )}
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title="Cancel this job?"
        verb="Cancel the job"
        act={() => cancel.mutateAsync()}
      >
        {status === 'active'
          ? 'The skill is told to stop, and stopped if it does not. What it has done outside the platform stays done.'
          : 'It will not run.'}
      </Confirm>
    </>
  );
}
