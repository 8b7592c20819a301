import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import {
  calendarMax,
  changeSchedule,
  cronPreviewQuery,
  deleteSchedule,
  runSchedule,
  type Schedule,
  scheduleQuery,
  scheduleRunsQuery,
} from '../api/schedules.ts';
import { ScheduleForm } from '../forms/ScheduleForm.tsx';
import { Calendar } from '../schedules/Calendar.tsx';
import { cronWords } from '../schedules/cron.ts';
import { NextRuns } from '../schedules/NextRuns.tsx';
import { RunsTable } from '../schedules/RunsTable.tsx';
import { ScheduleFacts } from '../schedules/ScheduleFacts.tsx';
import { utc } from '../schedules/zones.ts';
import { useMissingToRun } from '../skills/useMissingToRun.ts';
import { Button } from '../ui/Button.tsx';
import { CannotRun, WhyNot } from '../ui/CannotRun.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Pencil, Play, Trash2 } from '../ui/icons.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Permitted } from '../ui/NeedsScope.tsx';
import { Page, Section } from '../ui/Page.tsx';
import { Pending } from '../ui/Pending.tsx';
import { Enabled } from '../ui/Status.tsx';
import { Tabs } from '../ui/Tabs.tsx';
import { useAct } from '../ui/useAct.ts';
import { useDeleting } from '../ui/useDeleting.ts';
import { Usage } from '../usage/Usage.tsx';

const route = getRouteApi('/shell/schedules/$scheduleId');
const parent = { label: 'Schedules', to: '/schedules' };
/** Of the slots to come, as many as the platform counts at once. */
const comingMax = 50;

export function SchedulePage() {
  const { scheduleId } = route.useParams();
  const { tab = 'runs' } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(scheduleQuery(scheduleId));
  const runs = useQuery(scheduleRunsQuery(scheduleId, calendarMax));
  // What is below the calendar would be pushed down by it.
  if (query.data === undefined || runs.isPending) {
    return (
      <Page title="Schedule" parent={parent}>
        <Pending query={query.data === undefined ? query : runs} />
      </Page>
    );
  }
  const schedule = query.data;
  const expression = schedule.cron_expression;
  return (
    <Page
      title={cronWords(expression) ?? expression}
      about={
        <>
          <Enabled is={schedule.enabled} />
          {schedule.enabled && schedule.refusal && <CannotRun />}
        </>
      }
      parent={parent}
      actions={<Acts schedule={schedule} />}
    >
      <div className="grid items-start gap-5 lg:grid-cols-3">
        <Section title="What it runs" className="lg:col-span-2">
          <ScheduleFacts schedule={schedule} />
        </Section>
        <Section title={schedule.enabled ? 'Next runs' : 'Next runs, once it is enabled'}>
          {schedule.refusal ? (
            <WhyNot refusal={schedule.refusal} noun="schedule" />
          ) : (
            <NextRuns expression={expression} zone={schedule.timezone ?? utc} />
          )}
        </Section>
      </div>
      <Tabs
        value={tab}
        onValue={(next) =>
          void navigate({ search: next === 'runs' ? {} : { tab: next }, resetScroll: false })
        }
        tabs={[
          { value: 'runs', label: 'Runs', content: <Runs schedule={schedule} /> },
          {
            value: 'use',
            label: 'Use',
            content: (
              <Usage owner={{ kind: 'scheduled_job', id: schedule.id }} noun="this schedule" />
            ),
          },
        ]}
      />
    </Page>
  );
}

function Runs({ schedule }: { schedule: Schedule }) {
  const { id, cron_expression, timezone = utc } = schedule;
  const enabled = schedule.enabled && !schedule.refusal;
  const { view, day, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const runs = useQuery(scheduleRunsQuery(id, calendarMax));
  const coming = useQuery({ ...cronPreviewQuery(cron_expression, timezone, comingMax), enabled });
  return (
    <div className="flex flex-col gap-5">
      <Loaded query={runs}>
        {({ data, total }) => (
          <Calendar
            scheduleId={id}
            runs={data}
            total={total}
            nextRuns={enabled ? (coming.data?.next_runs ?? []) : []}
            view={view}
            day={day}
            onChange={(next) =>
              void navigate({
                search: (before) => ({ ...before, ...next }),
                replace: true,
                resetScroll: false,
              })
            }
          />
        )}
      </Loaded>
      <RunsTable
        scheduleId={id}
        page={page}
        onPage={(next) => void navigate({ search: (before) => ({ ...before, page: next }) })}
      />
    </div>
  );
}

function Acts({ schedule }: { schedule: Schedule }) {
  const { id, enabled } = schedule;
  const missing = useMissingToRun(schedule);
  const mayChange = missing?.length === 0;
  const [open, setOpen] = useState<'edit' | 'delete' | null>(null);
  const close = () => setOpen(null);
  const running = useAct({
    act: () => runSchedule(id),
    done: 'A run is queued',
    failed: 'It was not run',
    changes: [['schedules'], ['jobs']],
  });
  const switching = useAct({
    act: () => changeSchedule(id, { enabled: !enabled }),
    done: enabled ? 'The schedule is disabled' : 'The schedule is enabled',
    failed: 'The schedule was not changed',
    changes: [['schedules']],
  });
  const deleting = useDeleting(() => deleteSchedule(id), 'schedule', '/schedules', [['schedules']]);
  return (
    <>
      <Permitted missing={missing} act="Running or changing it">
        <Button icon={<Play />} busy={running.isPending} onClick={() => running.mutate()}>
          Run now
        </Button>
        <Button busy={switching.isPending} onClick={() => switching.mutate()}>
          {enabled ? 'Disable' : 'Enable'}
        </Button>
      </Permitted>
      <Menu
        label="More"
        items={[
          ...(mayChange ? [{ label: 'Edit', icon: <Pencil />, act: () => setOpen('edit') }] : []),
          { label: 'Delete', icon: <Trash2 />, isDanger: true, act: () => setOpen('delete') },
        ]}
      />
      {open === 'edit' && <ScheduleForm schedule={schedule} onClose={close} />}
      <Confirm
        open={open === 'delete'}
        onClose={close}
        title="Delete this schedule?"
        verb="Delete"
        act={() => deleting.mutateAsync()}
      >
        A queued run is cancelled, an active attempt may finish. The record of its slots is deleted;
        their jobs stay.
      </Confirm>
    </>
  );
}
