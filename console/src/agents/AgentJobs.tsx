import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schema } from '../api/client.ts';
import { jobsQuery } from '../api/jobs.ts';
import { live } from '../api/queries.ts';
import { sourceText } from '../jobs/words.ts';
import { ButtonLink } from '../ui/Button.tsx';
import { ListChecks } from '../ui/icons.tsx';
import { Empty, Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Status } from '../ui/Status.tsx';
import { type Column, rowLink, Table } from '../ui/Table.tsx';
import { countText, Duration, Time } from '../ui/Time.tsx';

const shownMax = 20;

const columns: readonly Column<Schema<'JobListItem'>>[] = [
  {
    header: 'Skill',
    grows: true,
    cell: ({ job_id, skill_category, skill_version, skill_name }) => (
      <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={rowLink}>
        {skill_category}/{skill_version}/{skill_name}
      </Link>
    ),
  },
  { header: 'Status', cell: ({ status }) => <Status value={status} /> },
  {
    header: 'Source',
    from: 'md',
    cell: ({ trigger_type }) => trigger_type && sourceText(trigger_type),
  },
  {
    header: 'Duration',
    align: 'right',
    from: 'sm',
    cell: ({ duration_ms }) => <Duration ms={duration_ms ?? null} />,
  },
  { header: 'Accepted', align: 'right', cell: ({ created_at }) => <Time value={created_at} /> },
];

/** The newest jobs of an agent. */
export function AgentJobs({ agentId }: { agentId: string }) {
  const query = useQuery({
    ...jobsQuery({ agent_id: agentId, limit: shownMax, include: 'timing' }),
    refetchInterval: live,
  });
  return (
    <Section
      title="Newest jobs"
      flush
      actions={
        <ButtonLink to="/jobs" search={{ agent_id: agentId }} size="small" look="quiet">
          All {query.data === undefined ? '' : countText(query.data.total)} jobs
        </ButtonLink>
      }
    >
      <Loaded query={query}>
        {({ data }) => (
          <Table
            caption="Newest jobs"
            columns={columns}
            rows={data}
            rowKey={({ job_id }) => job_id}
            empty={
              <Empty
                icon={<ListChecks />}
                title="No jobs yet"
                action={<ButtonLink to="/skills">Choose a skill to run</ButtonLink>}
              >
                A request that carries <code>X-Agent-Id: {agentId}</code> runs as this agent.
              </Empty>
            }
          />
        )}
      </Loaded>
    </Section>
  );
}
