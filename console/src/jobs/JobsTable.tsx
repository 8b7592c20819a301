import { Link } from '@tanstack/react-router';
import { hasEnded, type JobListItem } from '../api/jobs.ts';
import { AgentLink } from '../ui/Links.tsx';
import { Status } from '../ui/Status.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { Duration, Time, useNow } from '../ui/Time.tsx';
import { sourceText } from './words.ts';

/** A table of jobs with links. `brief` is for pages that show the owner elsewhere. */
export function JobsTable({
  caption,
  jobs,
  brief = false,
}: {
  caption: string;
  jobs: readonly JobListItem[];
  brief?: boolean;
}) {
  return (
    <Table
      caption={caption}
      rows={jobs}
      rowKey={({ job_id }) => job_id}
      columns={brief ? columns.filter(({ header }) => !ownerColumns.includes(header)) : columns}
    />
  );
}

const ownerColumns = ['Agent', 'Source'];

const columns: readonly Column<JobListItem>[] = [
  { header: 'Status', cell: ({ status }) => <Status value={status} /> },
  {
    header: 'Skill',
    cell: ({ job_id, skill_category, skill_version, skill_name }) => (
      <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={rowLink}>
        <span className="font-normal text-muted max-sm:hidden">
          {skill_category}/{skill_version}/
        </span>
        {skill_name}
      </Link>
    ),
  },
  {
    header: 'Error',
    from: 'lg',
    grows: true,
    cell: ({ error }) =>
      error && (
        <span className="text-muted" title={error.message}>
          {error.message}
        </span>
      ),
  },
  { header: 'Agent', from: 'md', cell: ({ agent_id }) => <AgentLink id={agent_id} isInRow /> },
  {
    header: 'Source',
    from: 'lg',
    cell: ({ trigger_type }) => trigger_type && sourceText(trigger_type),
  },
  {
    header: 'Attempt',
    from: 'md',
    align: 'right',
    cell: ({ attempt = 0, max_attempts }) => attempt > 1 && `${attempt} of ${max_attempts}`,
  },
  { header: 'Accepted', align: 'right', cell: ({ created_at }) => <Time value={created_at} /> },
  { header: 'Duration', align: 'right', from: 'sm', cell: (job) => <Running job={job} /> },
];

/** How long it took, or has been running. */
export function Running({ job }: { job: JobListItem }) {
  const { started_at = null, duration_ms = null } = job;
  if (hasEnded(job) || job.status === 'queued' || started_at === null) {
    return <Duration ms={duration_ms} />;
  }
  return <Since start={Date.parse(started_at)} />;
}

function Since({ start }: { start: number }) {
  return <Duration ms={Math.max(0, useNow() - start)} />;
}
