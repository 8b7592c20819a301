/** Further facts of an agent, and the schedules and triggers that use it. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schema } from '../api/client.ts';
import { schedulesQuery } from '../api/schedules.ts';
import { triggersQuery } from '../api/triggers.ts';
import { timetableText } from '../schedules/zones.ts';
import { Id } from '../ui/Id.tsx';
import { textLink } from '../ui/Links.tsx';
import { Facts, Section } from '../ui/Page.tsx';
import { Time } from '../ui/Time.tsx';

export function AgentFacts({ agent: { id, created_at, updated_at } }: { agent: Schema<'Agent'> }) {
  const schedules = useQuery(schedulesQuery()).data?.filter(({ agent_id }) => agent_id === id);
  const triggers = useQuery(triggersQuery()).data?.data.filter(({ agent_id }) => agent_id === id);
  return (
    <div className="flex flex-col gap-4">
      <Section title="About">
        <Facts
          facts={[
            ['Id', <Id key="id" value={id} label="id" />],
            ['Created', <Time key="created" value={created_at} />],
            ['Updated', <Time key="updated" value={updated_at} />],
            [
              'Look at',
              <span key="look" className="flex flex-wrap gap-x-3">
                <Link to="/conversations" search={{ agent_id: id }} className={textLink}>
                  Conversations
                </Link>
                <Link to="/jobs" search={{ agent_id: id }} className={textLink}>
                  Jobs
                </Link>
              </span>,
            ],
          ]}
        />
      </Section>
      <Section title="Schedules">
        <Names none="No schedule names it.">
          {schedules?.map(({ id: scheduleId, skill_name, ...timetable }) => (
            <Link
              key={scheduleId}
              to="/schedules/$scheduleId"
              params={{ scheduleId }}
              className={textLink}
            >
              {skill_name}{' '}
              <span className="font-mono text-xs text-muted">{timetableText(timetable)}</span>
            </Link>
          ))}
        </Names>
      </Section>
      <Section title="Triggers">
        <Names none="No trigger names it.">
          {triggers?.map(({ id: triggerId, name }) => (
            <Link
              key={triggerId}
              to="/triggers/$triggerId"
              params={{ triggerId }}
              className={textLink}
            >
              {name}
            </Link>
          ))}
        </Names>
      </Section>
    </div>
  );
}

function Names({ none, children }: { none: string; children: readonly ReactNode[] | undefined }) {
  if (children === undefined) return <p className="text-[13px] text-muted">…</p>;
  if (children.length === 0) return <p className="text-[13px] text-muted">{none}</p>;
  return (
    <ul className="flex flex-col gap-1.5 text-[13px]">
      {children.map((child, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: each child has a key of its own
        <li key={i} className="min-w-0 truncate">
          {child}
        </li>
      ))}
    </ul>
  );
}
