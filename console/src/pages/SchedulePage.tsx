import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Pencil, Play, Trash2 } from 'lucide-react';
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
import { Button } from '../ui/Button.tsx';
import { Json } from '../ui/Code.tsx';
import { Confirm } from '../ui/Dialog.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Menu } from '../ui/Menu.tsx';
import { Facts, Page, Section } from '../ui/Page.tsx';
import { skillPath } from '../ui/Pickers.tsx';
import { Status, Tag } from '../ui/Status.tsx';
import { Time } from '../ui/Time.tsx';
import { useAct } from '../ui/useAct.ts';

const route = getRouteApi('/shell/schedules/$scheduleId');
const parent = { label: 'Schedules', to: '/schedules' };
/** Of the slots to come, as many as the platform counts at once. */
const comingMax = 50;

export function SchedulePage() {
  const { scheduleId } = route.useParams();
  const { view, day, page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(scheduleQuery(scheduleId));
  const runs = useQuery(scheduleRunsQuery(scheduleId, calendarMax));
  const expression = query.data?.cron_expression ?? '';
  const coming = useQuery({
    ...cronPreviewQuery(expression, comingMax),
    enabled: query.data?.enabled === true,
  });
  if (query.data === undefined) {
    return (
      <Page title="Schedule" parent={parent}>
        <Section>
          <Loaded query={query}>{() => null}</Loaded>
        </Section>
      </Page>
    );
  }
  const schedule = query.data;
  return (
    <Page
      title={cronWords(expression) ?? expression}
      about={<Status value={schedule.enabled ? 'enabled' : 'disabled'} />}
      parent={parent}
      actions={<Acts schedule={schedule} />}
    >
      <div className="grid items-start gap-5 lg:grid-cols-3">
        <Section title="What it runs" className="lg:col-span-2">
          <What schedule={schedule} />
        </Section>
        <Section title={schedule.enabled ? 'Next runs' : 'Next runs, once it is enabled'}>
          <NextRuns expression={expression} />
        </Section>
      </div>
      <Loaded query={runs}>
        {({ data, total }) => (
          <Calendar
            scheduleId={scheduleId}
            runs={data}
            total={total}
            nextRuns={schedule.enabled ? (coming.data?.next_runs ?? []) : []}
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
        scheduleId={scheduleId}
        page={page}
        onPage={(next) => void navigate({ search: (before) => ({ ...before, page: next }) })}
      />
    </Page>
  );
}

function What({ schedule }: { schedule: Schedule }) {
  const { skill_category, skill_version, skill_name, agent_id, last_run_status } = schedule;
  const lastJob = schedule.last_run_job_id;
  return (
    <div className="flex flex-col gap-4">
      <Facts
        facts={[
          [
            'Skill',
            <Link
              key="skill"
              to="/skills/$category/$version/$name"
              params={{ category: skill_category, version: skill_version, name: skill_name }}
              className="text-accent-text hover:underline"
            >
              {skillPath(schedule)}
            </Link>,
          ],
          [
            'Agent',
            <Link
              key="agent"
              to="/agents/$agentId"
              params={{ agentId: agent_id }}
              className="text-accent-text hover:underline"
            >
              {agent_id}
            </Link>,
          ],
          [
            'Cron',
            <span key="cron">
              <Tag>{schedule.cron_expression}</Tag> <span className="text-muted">in UTC</span>
            </span>,
          ],
          [
            'Last run',
            last_run_status === null ? (
              <span key="last" className="text-muted">
                Never
              </span>
            ) : (
              <span key="last" className="flex flex-wrap items-center gap-2">
                <Status value={last_run_status} />
                <Time value={schedule.last_run_at} />
                {lastJob !== null && (
                  <Link
                    to="/jobs/$jobId"
                    params={{ jobId: lastJob }}
                    className="text-accent-text hover:underline"
                  >
                    Open its job
                  </Link>
                )}
              </span>
            ),
          ],
          ['Made', <Time key="made" value={schedule.created_at} />],
          schedule.updated_at !== schedule.created_at && [
            'Changed',
            <Time key="changed" value={schedule.updated_at} />,
          ],
        ]}
      />
      <div>
        <h3 className="mb-1.5 text-[13px] font-medium">Input</h3>
        <Json value={schedule.input} label="Input" />
      </div>
    </div>
  );
}

function Acts({ schedule }: { schedule: Schedule }) {
  const { id, enabled } = schedule;
  const [open, setOpen] = useState<'edit' | 'delete' | null>(null);
  const navigate = route.useNavigate();
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
  const deleting = useAct({
    async act() {
      await deleteSchedule(id);
      // Before anything is read again: it is not there any more.
      await navigate({ to: '/schedules' });
    },
    done: 'The schedule is deleted',
    changes: [['schedules']],
    quiet: true,
  });
  return (
    <>
      <Button icon={<Play />} busy={running.isPending} onClick={() => running.mutate()}>
        Run now
      </Button>
      <Button busy={switching.isPending} onClick={() => switching.mutate()}>
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Menu
        label="More"
        items={[
          { label: 'Edit', icon: <Pencil />, act: () => setOpen('edit') },
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
        Nothing further runs by it: a run that waits is cancelled, an attempt that is under way may
        finish. The record of its past slots goes with it; their jobs stay.
      </Confirm>
    </>
  );
}
