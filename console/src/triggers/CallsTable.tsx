import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type TriggerCall, triggerCallsQuery } from '../api/triggers.ts';
import { Empty } from '../ui/Loading.tsx';
import { PagedTable } from '../ui/PagedTable.tsx';
import { pageSize } from '../ui/Pagination.tsx';
import { Nothing, Status, Tag, type Tone } from '../ui/Status.tsx';
import { type Column, rowLink } from '../ui/Table.tsx';
import { Duration, sizeText, Time } from '../ui/Time.tsx';

/** The last calls, accepted and refused. */
export function CallsTable({
  triggerId,
  page,
  onPage,
}: {
  triggerId: string;
  page: number;
  onPage: (page: number) => void;
}) {
  const query = useQuery(triggerCallsQuery(triggerId, pageSize, (page - 1) * pageSize));
  return (
    <PagedTable
      title="Recent calls"
      query={query}
      page={page}
      onPage={onPage}
      columns={columns}
      rowKey={({ id }) => id}
      empty={
        <Empty title="No calls yet">
          Every call is listed here about a second after its response, with the reason if it was
          refused. Calls are kept for 7 days.
        </Empty>
      }
    />
  );
}

const columns: readonly Column<TriggerCall>[] = [
  { header: 'When', cell: (call) => <When call={call} /> },
  { header: 'Answer', cell: (call) => <Answer call={call} /> },
  { header: 'What happened', grows: true, cell: (call) => <Words call={call} /> },
  {
    header: 'Size',
    from: 'md',
    align: 'right',
    cell: ({ body_bytes: bytes }) => (bytes === null ? <Nothing /> : sizeText(bytes)),
  },
  {
    header: 'Took',
    from: 'sm',
    align: 'right',
    cell: ({ duration_ms }) => <Duration ms={duration_ms} />,
  },
];

interface Given {
  call: TriggerCall;
}

function When({ call: { received_at, job_id } }: Given) {
  if (job_id === null) return <Time value={received_at} />;
  return (
    <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={rowLink}>
      <Time value={received_at} />
    </Link>
  );
}

const toneOf = (status: number): Tone => (status < 300 ? 'good' : status < 500 ? 'warn' : 'bad');

function Answer({ call: { status, replayed } }: Given) {
  return (
    <span className="flex items-center gap-2">
      <Status value="answer" tone={toneOf(status)}>
        {status}
      </Status>
      {replayed && <Tag>repeat</Tag>}
    </span>
  );
}

function Words({ call: { error, message, replayed, job_id, event_id } }: Given) {
  if (error !== null) {
    return (
      <span className="text-muted" title={message ?? error}>
        {message ?? error.replaceAll('_', ' ')}
      </span>
    );
  }
  const what = event_id === null ? 'job' : 'event';
  if (replayed) {
    return <span className="text-muted">Answered with the {what} of an earlier call</span>;
  }
  if (event_id !== null) return <span className="text-muted">An event was sent</span>;
  return job_id === null ? null : <span className="text-muted">A job was started</span>;
}
