import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import {
  childJobsQuery,
  childrenPageSize,
  hasEnded,
  type Job,
  type JobListItem,
} from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { classes } from '../ui/classes.ts';
import { ChevronRight } from '../ui/icons.tsx';
import { Problem, Skeleton } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Pagination } from '../ui/Pagination.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { Status } from '../ui/Status.tsx';
import { countText } from '../ui/Time.tsx';
import { Running } from './JobsTable.tsx';

/** Jobs that start jobs that start jobs: the platform refuses deeper ones. */
const depthMax = 8;

/** The jobs that a job started, as a tree; nothing for a job that started none. */
export function ChildJobs({ job }: { job: Job }) {
  const { data } = useQuery({
    ...childJobsQuery(job.job_id, 1),
    refetchInterval: hasEnded(job) ? false : live,
  });
  if (data === undefined || data.total === 0) return null;
  return (
    <Section
      title="Jobs that it started"
      actions={<span className="text-xs text-muted">{countText(data.total)}</span>}
      flush
    >
      <Children of={job} depth={1} />
    </Section>
  );
}

/** A page of the children of a job, newest first. */
function Children({ of, depth }: { of: Pick<Job, 'job_id' | 'status'>; depth: number }) {
  const [page, setPage] = useState(1);
  const query = useQuery({
    ...childJobsQuery(of.job_id, page),
    // A job that was running may have changed its state since the list above was read.
    refetchInterval: (children) => {
      const isQuiet = hasEnded(of) && (children.state.data?.data.every(hasEnded) ?? false);
      return isQuiet ? false : live(children);
    },
  });
  if (query.data === undefined) {
    return query.error ? <Problem error={query.error} /> : <Skeleton lines={1} />;
  }
  const { data, total } = query.data;
  if (total === 0) {
    return (
      <p className={classes('py-1.5 pr-4 text-[13px] text-muted', indents[depth])}>
        It started no jobs.
      </p>
    );
  }
  return (
    <>
      <ul aria-label={depth === 1 ? 'Jobs that it started' : 'Jobs that this one started'}>
        {data.map((child) => (
          <Child key={child.job_id} job={child} depth={depth} />
        ))}
      </ul>
      {total > childrenPageSize && (
        <Pagination page={page} size={childrenPageSize} total={total} onPage={setPage} />
      )}
    </>
  );
}

const indents = [
  ...['', 'pl-2', 'pl-6 max-sm:pl-4', 'pl-10 max-sm:pl-6', 'pl-14 max-sm:pl-8'],
  ...['pl-18 max-sm:pl-10', 'pl-22 max-sm:pl-12', 'pl-26 max-sm:pl-14', 'pl-30 max-sm:pl-16'],
];

function Child({ job, depth }: { job: JobListItem; depth: number }) {
  const [isOpen, setOpen] = useState(false);
  const path = skillPath(job);
  return (
    <li className="border-b border-line/60 last:border-0">
      <div
        className={classes(
          'flex items-center gap-2 py-1.5 pr-4 text-[13px] transition-colors hover:bg-hover',
          indents[depth],
        )}
      >
        {depth < depthMax ? (
          <button
            type="button"
            aria-expanded={isOpen}
            aria-label={`Jobs that ${path} started`}
            onClick={() => setOpen(!isOpen)}
            className="flex size-6 shrink-0 items-center justify-center rounded text-muted hover:text-ink"
          >
            <ChevronRight
              aria-hidden
              className={classes('size-3.5 transition-transform', isOpen && 'rotate-90')}
            />
          </button>
        ) : (
          <span className="size-6 shrink-0" />
        )}
        <Link
          to="/jobs/$jobId"
          params={{ jobId: job.job_id }}
          className="min-w-0 grow truncate font-medium hover:underline"
          title={path}
        >
          {path}
        </Link>
        <Status value={job.status} />
        <span className="w-20 shrink-0 text-right text-muted max-sm:hidden">
          <Running job={job} />
        </span>
      </div>
      {isOpen && <Children of={job} depth={depth + 1} />}
    </li>
  );
}
