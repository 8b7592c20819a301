import { Link } from '@tanstack/react-router';
import type { Job } from '../api/jobs.ts';
import { textLink } from '../ui/Links.tsx';
import { sourceText } from './words.ts';

/** What has begun it; a link where that is still there. */
export function Source({ job }: { job: Job }) {
  const text = sourceText(job.trigger_type);
  if (job.scheduled_job_id) {
    return (
      <Link
        to="/schedules/$scheduleId"
        params={{ scheduleId: job.scheduled_job_id }}
        className={textLink}
      >
        {text}
      </Link>
    );
  }
  if (job.trigger_id) {
    return (
      <Link to="/triggers/$triggerId" params={{ triggerId: job.trigger_id }} className={textLink}>
        {text}
      </Link>
    );
  }
  return text;
}
