import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { live } from '../api/queries.ts';
import {
  changeSchedule,
  type ListedSchedule,
  runSchedule,
  schedulesQuery,
} from '../api/schedules.ts';
import { ScheduleForm } from '../forms/ScheduleForm.tsx';
import { cronWords } from '../schedules/cron.ts';
import { timetableText } from '../schedules/zones.ts';
import { useMissingToRun } from '../skills/useMissingToRun.ts';
import { IconButton } from '../ui/Button.tsx';
import { CannotRun } from '../ui/CannotRun.tsx';
import { classes } from '../ui/classes.ts';
import { Switch } from '../ui/Field.tsx';
import { CalendarClock, Play } from '../ui/icons.tsx';
import { ListPage } from '../ui/ListPage.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { Enabled, Nothing, Status } from '../ui/Status.tsx';
import { aboveRowLink, type Column, rowLink } from '../ui/Table.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

const columns: readonly Column<ListedSchedule>[] = [
  { header: 'Schedule', grows: true, cell: (one) => <Name schedule={one} /> },
  { header: 'Skill', from: 'md', cell: (one) => <Skill schedule={one} /> },
  { header: 'Last run', from: 'sm', cell: (one) => <LastRun schedule={one} /> },
  {
    header: 'Next run',
    from: 'md',
    cell: (one) => (one.enabled && !one.refusal ? <Time value={one.next_run_at} /> : <Nothing />),
  },
  { header: 'Enabled', align: 'right', cell: (one) => <Acts schedule={one} /> },
];

export function SchedulesPage() {
  const navigate = useNavigate();
  const query = useQuery({
    ...schedulesQuery(),
    refetchInterval: live,
    select: (data) => ({ data }),
  });
  return (
    <ListPage
      title="Schedules"
      query={query}
      columns={columns}
      rowKey={({ id }) => id}
      add="New schedule"
      form={(close) => (
        <ScheduleForm
          onClose={close}
          onDone={({ id }) =>
            void navigate({ to: '/schedules/$scheduleId', params: { scheduleId: id } })
          }
        />
      )}
      icon={<CalendarClock />}
      none="No schedules yet"
      about="A schedule runs a skill repeatedly, such as every weekday at nine, and records the outcome of every slot."
    />
  );
}

interface Given {
  schedule: ListedSchedule;
}

function Name({ schedule }: Given) {
  const { id, cron_expression, enabled, last_run_status, refusal } = schedule;
  const words = cronWords(cron_expression) ?? cron_expression;
  return (
    <div className={classes('min-w-0', !enabled && 'text-muted')}>
      <Link
        to="/schedules/$scheduleId"
        params={{ scheduleId: id }}
        className={classes(rowLink, 'block truncate')}
        title={words}
      >
        {words}
      </Link>
      <span className="block truncate font-mono text-xs text-muted">{timetableText(schedule)}</span>
      <span className="block truncate text-xs text-muted md:hidden">
        {skillPath(schedule)} · {schedule.agent_id}
      </span>
      {enabled && refusal && (
        <span className="mt-1 block" title={refusal.message}>
          <CannotRun />
        </span>
      )}
      {last_run_status !== null && (
        <span className="mt-1 block sm:hidden">
          <Status value={last_run_status} />
        </span>
      )}
    </div>
  );
}

function Skill({ schedule }: Given) {
  return (
    <>
      <span className="block max-w-64 truncate">{skillPath(schedule)}</span>
      <span className="block max-w-64 truncate text-xs text-muted">{schedule.agent_id}</span>
    </>
  );
}

function LastRun({ schedule: { last_run_at, last_run_status } }: Given) {
  if (last_run_status === null) return <span className="text-muted">Never</span>;
  return (
    <span className="flex items-center gap-2">
      <Status value={last_run_status} />
      <span className="text-muted max-lg:hidden">
        <Time value={last_run_at} />
      </span>
    </span>
  );
}

function Acts({ schedule }: Given) {
  const words = `${skillPath(schedule)}, ${cronWords(schedule.cron_expression)}`;
  const missing = useMissingToRun(schedule);
  const running = useAct({
    act: () => runSchedule(schedule.id),
    done: 'A run is queued',
    failed: 'It was not run',
    changes: [['schedules'], ['jobs']],
  });
  const switching = useAct({
    act: (enabled: boolean) => changeSchedule(schedule.id, { enabled }),
    done: ({ enabled }) => (enabled ? 'The schedule is enabled' : 'The schedule is disabled'),
    failed: 'The schedule was not changed',
    changes: [['schedules']],
  });
  // Its page says which scopes are missing.
  if (missing?.length !== 0) return <Enabled is={schedule.enabled} />;
  return (
    <span className={classes(aboveRowLink, 'inline-flex items-center gap-2')}>
      <IconButton
        label={`Run now: ${words}`}
        title="Run now"
        icon={<Play />}
        disabled={running.isPending}
        onClick={() => running.mutate()}
      />
      <Switch
        label={`Enabled: ${words}`}
        checked={switching.isPending ? switching.variables : schedule.enabled}
        onCheckedChange={(enabled) => switching.mutate(enabled)}
      />
    </span>
  );
}
