import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type Job, jobOriginQuery } from '../api/jobs.ts';
import { textLink } from '../ui/Links.tsx';
import { sourceText } from './words.ts';

/** What has begun it; a link where that is still there. */
export function Source({ job }: { job: Job }) {
  const { job_id, trigger_type } = job;
  const text = sourceText(trigger_type);
  const { data } = useQuery({ ...jobOriginQuery(job_id), enabled: trigger_type !== 'api' });
  if (data?.scheduled_job_id) {
    return (
      <Link
        to="/schedules/$scheduleId"
        params={{ scheduleId: data.scheduled_job_id }}
        className={textLink}
      >
        {text}
      </Link>
    );
  }
  if (data?.trigger_id) {
    return (
      <Link to="/triggers/$triggerId" params={{ triggerId: data.trigger_id }} className={textLink}>
        {text}
      </Link>
    );
  }
  return text;
}
