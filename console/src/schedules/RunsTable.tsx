import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ScheduledRun, scheduleRunsQuery } from '../api/schedules.ts';
import { Loaded } from '../ui/Loading.tsx';
import { Section } from '../ui/Page.tsx';
import { Pagination, pageSize } from '../ui/Pagination.tsx';
import { Status } from '../ui/Status.tsx';
import { rowLink, Table } from '../ui/Table.tsx';
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
    <Section title="Runs" flush>
      <Loaded query={query}>
        {({ data, total }) => (
          <>
            <Table
              caption="Runs"
              rows={data}
              rowKey={({ id }) => id}
              columns={[
                {
                  header: 'Slot',
                  cell: ({ scheduled_for, job_id }) =>
                    job_id === null ? (
                      exactTime(scheduled_for)
                    ) : (
                      <Link to="/jobs/$jobId" params={{ jobId: job_id }} className={rowLink}>
                        {exactTime(scheduled_for)}
                      </Link>
                    ),
                },
                { header: 'Outcome', cell: (run) => <Outcome run={run} /> },
                {
                  header: 'Job',
                  from: 'sm',
                  cell: ({ status }) =>
                    status === null ? (
                      <span className="text-muted">–</span>
                    ) : (
                      <Status value={status} />
                    ),
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
              ]}
              empty={
                <p className="px-4 py-8 text-center text-[13px] text-muted">
                  No slots yet. Every slot is listed here with its outcome.
                </p>
              }
            />
            {total > pageSize && <Pagination page={page} total={total} onPage={onPage} />}
          </>
        )}
      </Loaded>
    </Section>
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
