import { queryOptions, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { jobsQuery } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { Loaded } from '../ui/Loading.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
import { countText, durationText, exactTime, useNow } from '../ui/Time.tsx';
import { Quiet } from './Quiet.tsx';

const shownMax = 8;

export const activeJobsQuery = () =>
  queryOptions({
    ...jobsQuery({ status: 'active', include: 'timing', limit: shownMax }),
    refetchInterval: live,
  });

export function ActiveJobs() {
  const query = useQuery(activeJobsQuery());
  return (
    <Loaded query={query} lines={2}>
      {({ data, total }) => (
        <>
          <Table
            caption="Jobs that run now"
            rows={data}
            rowKey={({ job_id }) => job_id}
            columns={[
              {
                header: 'Skill',
                grows: true,
                cell: (job) => (
                  <Link to="/jobs/$jobId" params={{ jobId: job.job_id }} className={rowLink}>
                    {skillPath(job)}
                  </Link>
                ),
              },
              { header: 'Agent', from: 'sm', cell: ({ agent_id }) => agent_id },
              {
                header: 'Attempt',
                align: 'right',
                from: 'md',
                cell: ({ attempt, max_attempts }) => `${attempt} of ${max_attempts}`,
              },
              {
                header: 'Runs for',
                align: 'right',
                cell: ({ started_at }) => <Since time={started_at ?? null} />,
              },
            ]}
            empty={<Quiet>No active jobs.</Quiet>}
          />
          {total > data.length && (
            <p className="border-t px-4 py-2 text-[13px] text-muted">
              <Link to="/jobs" search={{ status: 'active' }} className="hover:underline">
                All {countText(total)} that run
              </Link>
            </p>
          )}
        </>
      )}
    </Loaded>
  );
}

function Since({ time }: { time: string | null }) {
  const now = useNow();
  if (time === null) return '–';
  return (
    <time dateTime={time} title={`since ${exactTime(time)}`}>
      {durationText(Math.max(0, now - Date.parse(time)))}
    </time>
  );
}
