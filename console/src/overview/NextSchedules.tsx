import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { live } from '../api/queries.ts';
import { schedulesQuery } from '../api/schedules.ts';
import { timetableText } from '../schedules/zones.ts';
import { Loaded } from '../ui/Loading.tsx';
import { Nothing, Status } from '../ui/Status.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { Quiet } from './Quiet.tsx';

const shownMax = 5;

export function NextSchedules() {
  const query = useQuery({ ...schedulesQuery(), refetchInterval: live });
  return (
    <Loaded query={query} lines={2}>
      {(schedules) => (
        <Table
          caption="Schedules that run next"
          rows={schedules
            .filter(({ enabled, refusal }) => enabled && !refusal)
            .sort((a, b) => a.next_run_at.localeCompare(b.next_run_at))
            .slice(0, shownMax)}
          rowKey={({ id }) => id}
          columns={[
            {
              header: 'Skill',
              grows: true,
              cell: ({ id, skill_name, agent_id }) => (
                <Link to="/schedules/$scheduleId" params={{ scheduleId: id }} className={rowLink}>
                  {skill_name}
                  <span className="ml-2 font-normal text-muted">{agent_id}</span>
                </Link>
              ),
            },
            {
              header: 'Cron',
              from: 'sm',
              cell: (one) => <code className="font-mono text-xs">{timetableText(one)}</code>,
            },
            {
              header: 'Last run',
              from: 'sm',
              cell: ({ last_run_status }) =>
                last_run_status === null ? <Nothing /> : <Status value={last_run_status} />,
            },
            {
              header: 'Next run',
              align: 'right',
              cell: ({ next_run_at }) => <Time value={next_run_at} />,
            },
          ]}
          empty={
            <Quiet>
              {schedules.length === 0
                ? 'There are no schedules.'
                : 'No schedule is enabled and can run.'}
            </Quiet>
          }
        />
      )}
    </Loaded>
  );
}
