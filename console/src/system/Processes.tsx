import { useQuery } from '@tanstack/react-query';
import type { Schema } from '../api/client.ts';
import { processesQuery } from '../api/processes.ts';
import { Id } from '../ui/Id.tsx';
import { Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Status, Tag } from '../ui/Status.tsx';
import { type Column, Table } from '../ui/Table.tsx';
import { Tags } from '../ui/Tags.tsx';
import { countText, Time } from '../ui/Time.tsx';

type Process = Schema<'LiveProcess'>;

/** The processes that the platform is made of right now. */
export function Processes() {
  const query = useQuery(processesQuery());
  const versions = new Set(query.data?.data.map(({ version }) => version));
  return (
    <Section
      title="Live processes"
      flush
      actions={
        versions.size > 1 && (
          <Status value="versions" tone="warn">
            {versions.size} versions
          </Status>
        )
      }
    >
      <Loaded query={query} lines={2}>
        {({ data }) => (
          <Table
            caption="Live processes"
            columns={columns}
            rows={data}
            rowKey={({ id }) => id}
            empty={<p className="p-4 text-[13px] text-muted">No process in the last 15 seconds.</p>}
          />
        )}
      </Loaded>
    </Section>
  );
}

const columns: readonly Column<Process>[] = [
  {
    header: 'Process',
    grows: true,
    cell: ({ id }) => <Id value={id} label="id" />,
  },
  { header: 'Roles', cell: ({ roles }) => <Tags values={roles} most={3} /> },
  { header: 'Version', from: 'sm', cell: ({ version }) => <Tag>{version}</Tag> },
  {
    header: 'Skills',
    align: 'right',
    from: 'md',
    cell: ({ skills }) => <span title={skills.join('\n')}>{countText(skills.length)}</span>,
  },
  {
    // What a process accepts itself and begins at once never was in a queue.
    header: 'Last took from a queue',
    align: 'right',
    from: 'lg',
    cell: ({ last_job_at }) => <Time value={last_job_at} />,
  },
  {
    header: 'Started',
    align: 'right',
    from: 'md',
    cell: ({ started_at }) => <Time value={started_at} />,
  },
  {
    header: 'Heard',
    align: 'right',
    from: 'sm',
    cell: ({ seen_at }) => <Time value={seen_at} />,
  },
];
