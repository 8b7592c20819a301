import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ScheduledRun, scheduleRunsQuery } from '../api/schedules.ts';
import { PagedTable } from '../ui/PagedTable.tsx';
import { pageSize } from '../ui/Pagination.tsx';
import { Nothing, Status } from '../ui/Status.tsx';
import { type Column, rowLink } from '../ui/Table.tsx';
import { exactTime, Time } from '../ui/Time.tsx';
import { outcomeTone, outcomeWords } from './outcomes.ts';

/** What became of each slot, as a list. */
export function RunsTable({
  scheduleId,
  page,
  onPage,
}: {
  scheduleId: string;
  page: number;
  onPage: (page: number) => void;
}) {
  const query = useQuery(scheduleRunsQuery(scheduleId, pageSize, (page - 1) * pageSize));
  return (
    <PagedTable
      title="Runs"
      query={query}
      page={page}
      onPage={onPage}
      columns={columns}
      rowKey={({ id }) => id}
      empty={
        <p className="px-4 py-8 text-center text-[13px] text-muted">
          No slots yet. Every slot is listed here with its outcome.
        </p>
      }
    />
  );
}

const columns: readonly Column<ScheduledRun>[] = [
  { header: 'Slot', cell: (run) => <Slot run={run} /> },
  { header: 'Outcome', cell: (run) => <Outcome run={run} /> },
  {
    header: 'Job',
    from: 'sm',
    cell: ({ status }) => (status === null ? <Nothing /> : <Status value={status} />),
  },
  {
    header: 'Why',
    from: 'md',
    grows: true,
    cell: ({ message }) => (
      <span className="text-muted" title={message ?? undefined}>
        {message}
      </span>
    ),
  },
  {
    header: 'When',
    from: 'lg',
    align: 'right',
    cell: ({ scheduled_for }) => <Time value={scheduled_for} />,
  },
];

function Slot({ run: { scheduled_for, job_id } }: { run: ScheduledRun }) {
  if (job_id === null) return exactTime(scheduled_for);
  return (
    <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={rowLink}>
      {exactTime(scheduled_for)}
    </Link>
  );
}

/** Where there is no room for both, how the run ended counts for more than that it was on time. */
function Outcome({ run: { outcome, slots, status } }: { run: ScheduledRun }) {
  return (
    <span className="flex items-center gap-2">
      <span className={status === null ? '' : 'max-sm:hidden'}>
        <Status value={outcome} tone={outcomeTone[outcome]}>
          {outcomeWords[outcome]}
        </Status>
      </span>
      {status !== null && (
        <span className="sm:hidden">
          <Status value={status} />
        </span>
      )}
      {slots > 1 && <span className="text-muted tabular-nums">{slots} slots</span>}
    </span>
  );
}
