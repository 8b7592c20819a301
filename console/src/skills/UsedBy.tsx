import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { live } from '../api/queries.ts';
import { skillUsagesQuery } from '../api/skills.ts';
import { timetableText } from '../schedules/zones.ts';
import { useIsAdministrator } from '../shell/session.ts';
import { Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Enabled } from '../ui/Status.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
import { countText, Time } from '../ui/Time.tsx';

/** What would miss a version if it were deprecated. */
export function UsedBy({
  category,
  version,
  name,
}: {
  category: string;
  version: string;
  name: string;
}) {
  const isAdministrator = useIsAdministrator();
  const query = useQuery({
    ...skillUsagesQuery(category, version, name),
    refetchInterval: live,
  });
  return (
    <Loaded query={query}>
      {(usages) => (
        <div className="flex flex-col gap-5">
          <Section title={counted('Schedules', usages.total_scheduled_jobs)} flush>
            <Table
              caption="Schedules that run this version"
              rows={usages.scheduled_jobs}
              rowKey={({ id }) => id}
              columns={[
                {
                  header: 'Cron',
                  grows: true,
                  cell: ({ id, ...timetable }) => (
                    <Link
                      to="/schedules/$scheduleId"
                      params={{ scheduleId: id }}
                      className={rowLink}
                    >
                      <code className="font-mono text-xs">{timetableText(timetable)}</code>
                    </Link>
                  ),
                },
                { header: 'Agent', cell: ({ agent_id }) => agent_id },
                {
                  header: 'State',
                  cell: ({ enabled }) => <Enabled is={enabled} />,
                },
              ]}
              empty={<Nothing>No schedule runs this version.</Nothing>}
            />
            <Rest shown={usages.scheduled_jobs.length} total={usages.total_scheduled_jobs} />
          </Section>
          <Section title={counted('Triggers', usages.total_agent_triggers)} flush>
            <Table
              caption="Triggers that run this version"
              rows={usages.agent_triggers}
              rowKey={({ id }) => id}
              columns={[
                {
                  header: 'Name',
                  grows: true,
                  cell: ({ id, name: trigger }) => (
                    <Link to="/triggers/$triggerId" params={{ triggerId: id }} className={rowLink}>
                      {trigger}
                    </Link>
                  ),
                },
                { header: 'Agent', cell: ({ agent_id }) => agent_id },
                {
                  header: 'State',
                  cell: ({ active }) => <Enabled is={active} />,
                },
              ]}
              empty={<Nothing>No trigger runs this version.</Nothing>}
            />
            <Rest shown={usages.agent_triggers.length} total={usages.total_agent_triggers} />
          </Section>
          <Section title={counted('API keys in the last 30 days', usages.total_api_keys)} flush>
            <Table
              caption="API keys in whose name this version was run"
              rows={usages.api_keys}
              rowKey={({ id }) => id}
              columns={[
                {
                  header: 'Client',
                  grows: true,
                  cell: ({ id, client_name }) =>
                    isAdministrator ? (
                      <Link to="/api-keys/$keyId" params={{ keyId: id }} className={rowLink}>
                        {client_name}
                      </Link>
                    ) : (
                      client_name
                    ),
                },
                { header: 'Runs', align: 'right', cell: ({ runs }) => countText(runs) },
                {
                  header: 'Last used',
                  align: 'right',
                  cell: ({ last_used_at }) => <Time value={last_used_at} />,
                },
              ]}
              empty={<Nothing>No key has run this version in the last 30 days.</Nothing>}
            />
            <Rest shown={usages.api_keys.length} total={usages.total_api_keys} />
          </Section>
        </div>
      )}
    </Loaded>
  );
}

const counted = (what: string, n: number) => `${what} (${countText(n)})`;

const Nothing = ({ children }: { children: ReactNode }) => (
  <p className="px-4 py-4 text-[13px] text-muted">{children}</p>
);

const Rest = ({ shown, total }: { shown: number; total: number }) =>
  total > shown && (
    <p className="border-t px-4 py-2 text-xs text-muted">
      {countText(total - shown)} more are not listed.
    </p>
  );
