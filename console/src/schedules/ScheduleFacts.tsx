import { Link } from '@tanstack/react-router';
import type { Schedule } from '../api/schedules.ts';
import { Json } from '../ui/Code.tsx';
import { AgentLink, SkillLink, textLink } from '../ui/Links.tsx';
import { Facts } from '../ui/Page.tsx';
import { Status, Tag } from '../ui/Status.tsx';
import { Time } from '../ui/Time.tsx';
import { utc } from './zones.ts';

/** The skill, agent and input of a schedule. */
export function ScheduleFacts({ schedule }: { schedule: Schedule }) {
  const { agent_id, last_run_status } = schedule;
  const lastJob = schedule.last_run_job_id;
  return (
    <div className="flex flex-col gap-4">
      <Facts
        facts={[
          ['Skill', <SkillLink key="skill" skill={schedule} />],
          ['Agent', <AgentLink key="agent" id={agent_id} />],
          schedule.priority !== undefined && ['Priority', schedule.priority],
          [
            'Cron',
            <span key="cron">
              <Tag>{schedule.cron_expression}</Tag>{' '}
              <span className="text-muted">in {schedule.timezone ?? utc}</span>
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
                  <Link to="/jobs/$jobId" params={{ jobId: lastJob }} className={textLink}>
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
