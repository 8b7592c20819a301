import { useState } from 'react';
import { cancelJob, hasEnded, type Job } from '../api/jobs.ts';
import { Button } from '../ui/Button.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { CircleX } from '../ui/icons.tsx';
import { useAct } from '../ui/useAct.ts';

const done = 'What it has done outside the platform stays done.';
const effects: Partial<Record<Job['status'], string>> & { queued: string } = {
  queued: 'It will not run.',
  active: `The skill is told to stop, and stopped if it does not. ${done}`,
  waiting: `It will not go on, and nothing that it waits for is needed any more. ${done}`,
};

/** Cancels a job that has not ended, once one has said yes. */
export function CancelJob({ job, size }: { job: Job; size?: 'small' }) {
  const [isAsking, setAsking] = useState(false);
  const cancel = useAct({
    act: () => cancelJob(job.job_id),
    done: ({ status }) => (status === 'cancelled' ? 'The job is cancelled' : 'The job is stopping'),
    changes: [['jobs']],
    quiet: true,
  });
  return (
    <>
      {!hasEnded(job) && (
        <Button
          look="danger"
          {...(size && { size })}
          icon={<CircleX />}
          onClick={() => setAsking(true)}
        >
          Cancel
        </Button>
      )}
      <Confirm
        open={isAsking}
        onClose={() => setAsking(false)}
        title="Cancel this job?"
        verb="Cancel the job"
        act={() => cancel.mutateAsync()}
      >
        {effects[job.status] ?? effects.queued}
      </Confirm>
    </>
  );
}
